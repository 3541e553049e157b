//===- Emission.cpp - steps that handlers share: broadcasts, reshapes, slices, conversions
//-------===//

#include "NodeImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "onnx-ml.pb.h"

namespace mlir::moec::onnx_import {

Value NodeImporter::constant(Attribute value) {
  return arith::ConstantOp::create(builder, location, cast<TypedAttr>(value));
}

static TypedAttr numberAttr(Type element, double value) {
  if (isa<FloatType>(element))
    return FloatAttr::get(element, value);
  return IntegerAttr::get(element, static_cast<int64_t>(value));
}

Value NodeImporter::scalarTensor(Type element, double value) {
  auto type = RankedTensorType::get({}, element);
  return constant(DenseElementsAttr::get(type, Attribute(numberAttr(element, value))));
}

Value NodeImporter::empty(ArrayRef<SymbolicSize> shape, Type element) {
  return tensor::EmptyOp::create(builder, location, graph.sizeFolds(shape), element);
}

Value NodeImporter::filled(ArrayRef<SymbolicSize> shape, Attribute value) {
  auto typed = cast<TypedAttr>(value);
  Value scalar = constant(typed);
  return linalg::FillOp::create(builder, location, scalar, empty(shape, typed.getType()))
      .getResult(0);
}

FailureOr<Shape> NodeImporter::broadcastShape(ArrayRef<Shape> shapes) {
  size_t rank = 0;
  for (const Shape &shape : shapes)
    rank = std::max(rank, shape.size());
  Shape result(rank, SymbolicSize(1));
  for (const Shape &shape : shapes) {
    for (size_t i = 0; i < shape.size(); ++i) {
      SymbolicSize &size = result[rank - shape.size() + i];
      if (shape[i].isConstant(1) || shape[i] == size)
        continue;
      if (!size.isConstant(1))
        return fail("cannot tell that the sizes " + graph.toString(size) + " and " +
                    graph.toString(shape[i]) +
                    " are equal; give dimensions that are equal one name, or fix them");
      size = shape[i];
    }
  }
  return result;
}

Value NodeImporter::broadcast(Value value, ArrayRef<SymbolicSize> from, ArrayRef<SymbolicSize> to) {
  if (from == to)
    return value;
  // Dimensions of size 1 that grow are dropped first; linalg.broadcast then inserts them.
  Shape kept;
  SmallVector<int64_t> inserted;
  size_t leading = to.size() - from.size();
  for (size_t i = 0; i < to.size(); ++i) {
    if (i >= leading && from[i - leading] == to[i])
      kept.push_back(to[i]);
    else
      inserted.push_back(i);
  }
  Value source = reshape(value, from, kept);
  if (!source)
    return Value();
  if (inserted.empty())
    return source;
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  return linalg::BroadcastOp::create(builder, location, source, empty(to, element), inserted)
      ->getResult(0);
}

/// Cuts both shapes into the shortest runs with equal products. Empty when they cannot be cut like
/// that.
static SmallVector<std::pair<SmallVector<int64_t>, SmallVector<int64_t>>>
alignShapes(ArrayRef<SymbolicSize> from, ArrayRef<SymbolicSize> to) {
  SmallVector<std::pair<SmallVector<int64_t>, SmallVector<int64_t>>> runs;
  size_t i = 0, j = 0;
  while (i < from.size() && j < to.size()) {
    std::pair<SmallVector<int64_t>, SmallVector<int64_t>> run;
    std::optional<SymbolicSize> left = from[i], right = to[j];
    run.first.push_back(i++);
    run.second.push_back(j++);
    while (left && right && *left != *right) {
      // The side that divides the other one grows.
      bool growLeft = SymbolicSize::divideExactly(*right, *left).has_value();
      bool growRight = SymbolicSize::divideExactly(*left, *right).has_value();
      if (growLeft && i < from.size()) {
        left = SymbolicSize::multiply(*left, from[i]);
        run.first.push_back(i++);
      } else if (growRight && j < to.size()) {
        right = SymbolicSize::multiply(*right, to[j]);
        run.second.push_back(j++);
      } else if (i < from.size() && (!left->constant() || !right->constant() ||
                                     *left->constant() < *right->constant())) {
        left = SymbolicSize::multiply(*left, from[i]);
        run.first.push_back(i++);
      } else if (j < to.size()) {
        right = SymbolicSize::multiply(*right, to[j]);
        run.second.push_back(j++);
      } else {
        return {};
      }
    }
    if (!left || !right)
      return {};
    runs.push_back(std::move(run));
  }
  // What is left can only be ones.
  for (; i < from.size(); ++i) {
    if (!from[i].isConstant(1) || runs.empty())
      return {};
    runs.back().first.push_back(i);
  }
  for (; j < to.size(); ++j) {
    if (!to[j].isConstant(1) || runs.empty())
      return {};
    runs.back().second.push_back(j);
  }
  return runs;
}

Value NodeImporter::reshape(Value value, ArrayRef<SymbolicSize> from, ArrayRef<SymbolicSize> to) {
  if (from == to)
    return value;
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  if (from.empty() || to.empty()) {
    // Between a scalar and a tensor of ones.
    for (const SymbolicSize &size : from.empty() ? to : from) {
      if (!size.isConstant(1)) {
        (void)fail("cannot reshape " + graph.toString(Shape(from)) + " to " +
                   graph.toString(Shape(to)));
        return Value();
      }
    }
    RankedTensorType type = graph.tensorType(element, to);
    if (to.empty())
      return tensor::CollapseShapeOp::create(builder, location, type, value,
                                             ArrayRef<ReassociationIndices>());
    return tensor::ExpandShapeOp::create(builder, location, type, value,
                                         ArrayRef<ReassociationIndices>());
  }
  auto runs = alignShapes(from, to);
  if (runs.empty()) {
    // Zero elements, or sizes that only running tells apart.
    FailureOr<SymbolicSize> all = product(from), wanted = product(to);
    if (failed(all) || failed(wanted))
      return Value();
    if (*all != *wanted) {
      (void)fail("cannot reshape " + graph.toString(Shape(from)) + " to " +
                 graph.toString(Shape(to)) + ": " + graph.toString(*all) + " elements against " +
                 graph.toString(*wanted));
      return Value();
    }
    runs.emplace_back();
    for (size_t i = 0; i < from.size(); ++i)
      runs.back().first.push_back(i);
    for (size_t j = 0; j < to.size(); ++j)
      runs.back().second.push_back(j);
  }
  // Merge every run of several source dimensions, then split every run of several result
  // dimensions.
  Shape merged;
  SmallVector<ReassociationIndices> merges, splits;
  for (auto &[sources, results] : runs) {
    FailureOr<SymbolicSize> size = product(to.slice(results.front(), results.size()));
    if (failed(size))
      return Value();
    merged.push_back(*size);
    merges.emplace_back(sources.begin(), sources.end());
    splits.emplace_back(results.begin(), results.end());
  }
  if (merged.size() != from.size())
    value = tensor::CollapseShapeOp::create(builder, location, graph.tensorType(element, merged),
                                            value, merges);
  if (merged.size() != to.size())
    value = tensor::ExpandShapeOp::create(builder, location, graph.tensorType(element, to), value,
                                          splits, graph.sizeFolds(to));
  return value;
}

Value NodeImporter::transpose(Value value, ArrayRef<int64_t> permutation) {
  if (llvm::all_of(llvm::enumerate(permutation),
                   [](auto pair) { return int64_t(pair.index()) == pair.value(); }))
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<OpFoldResult> sizes;
  for (int64_t source : permutation)
    sizes.push_back(tensor::getMixedSize(builder, location, value, source));
  Value init = tensor::EmptyOp::create(builder, location, sizes, type.getElementType());
  return linalg::TransposeOp::create(builder, location, value, init, permutation)->getResult(0);
}

Value NodeImporter::slice(Value value, ArrayRef<SymbolicSize> offsets, ArrayRef<SymbolicSize> sizes,
                          ArrayRef<int64_t> strides) {
  SmallVector<OpFoldResult> strideFolds;
  for (int64_t stride : strides)
    strideFolds.push_back(builder.getIndexAttr(stride));
  auto type = cast<RankedTensorType>(value.getType());
  return tensor::ExtractSliceOp::create(
      builder, location, graph.tensorType(type.getElementType(), sizes), value,
      graph.sizeFolds(offsets), graph.sizeFolds(sizes), strideFolds);
}

Value NodeImporter::concatenate(ValueRange values, int64_t axis, ArrayRef<SymbolicSize> shape) {
  Type element = cast<RankedTensorType>(values.front().getType()).getElementType();
  return tensor::ConcatOp::create(builder, location, graph.tensorType(element, shape), axis,
                                  values);
}

Value NodeImporter::parallel(ValueRange operands, ArrayRef<AffineMap> maps,
                             ArrayRef<SymbolicSize> shape, Type element, ElementBuilder body) {
  Value init = empty(shape, element);
  SmallVector<AffineMap> allMaps(maps);
  allMaps.push_back(builder.getMultiDimIdentityMap(shape.size()));
  SmallVector<utils::IteratorType> iterators(shape.size(), utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, location, init.getType(), operands, init, allMaps, iterators,
      [&](OpBuilder &inner, Location loc, ValueRange arguments) {
        linalg::YieldOp::create(inner, loc, body(inner, loc, arguments.drop_back()));
      });
  return generic.getResult(0);
}

static bool isUnsigned(int dataType) {
  using onnx::TensorProto;
  return dataType == TensorProto::UINT8 || dataType == TensorProto::UINT16 ||
         dataType == TensorProto::UINT32 || dataType == TensorProto::UINT64 ||
         dataType == TensorProto::BOOL;
}

Value NodeImporter::castElements(Value value, int fromType, int toType) {
  if (fromType == toType)
    return value;
  auto sourceType = cast<RankedTensorType>(value.getType());
  Type from = sourceType.getElementType(), to = graph.elementType(toType);
  if (from == to) // signedness aside
    return value;
  Type resultType = sourceType.clone(to);
  auto zeros = [&]() -> Value {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, location, value);
    Value init = tensor::EmptyOp::create(builder, location, sizes, from);
    return linalg::FillOp::create(builder, location, constant(numberAttr(from, 0)), init)
        .getResult(0);
  };
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(to);
  if (toType == onnx::TensorProto::BOOL) {
    if (fromFloat)
      return arith::CmpFOp::create(builder, location, arith::CmpFPredicate::UNE, value, zeros());
    return arith::CmpIOp::create(builder, location, arith::CmpIPredicate::ne, value, zeros());
  }
  if (fromFloat && toFloat) {
    if (from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(builder, location, resultType, value);
    if (from.getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth())
      return arith::TruncFOp::create(builder, location, resultType, value);
    // Between f16 and bf16 the way leads through f32.
    Value wide =
        arith::ExtFOp::create(builder, location, sourceType.clone(builder.getF32Type()), value);
    return arith::TruncFOp::create(builder, location, resultType, wide);
  }
  if (fromFloat) {
    if (isUnsigned(toType))
      return arith::FPToUIOp::create(builder, location, resultType, value);
    return arith::FPToSIOp::create(builder, location, resultType, value);
  }
  if (toFloat) {
    if (isUnsigned(fromType))
      return arith::UIToFPOp::create(builder, location, resultType, value);
    return arith::SIToFPOp::create(builder, location, resultType, value);
  }
  if (from.getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(builder, location, resultType, value);
  if (isUnsigned(fromType))
    return arith::ExtUIOp::create(builder, location, resultType, value);
  return arith::ExtSIOp::create(builder, location, resultType, value);
}

} // namespace mlir::moec::onnx_import
