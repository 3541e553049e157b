//===- Indexing.cpp - gathers and top-k
//-----------------------------------------------------------===//

#include "Handlers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "onnx-ml.pb.h"

#include <limits>

namespace mlir::moec::onnx_import {

using onnx::TensorProto;

static LogicalResult expectIndices(NodeImporter &node, size_t i) {
  int type = node.input(i).dataType;
  if (type == TensorProto::INT64 || type == TensorProto::INT32)
    return success();
  return node.fail("the indices are of type " + dataTypeName(type) + ", expected INT64 or INT32");
}

/// An index from data as a position in a dimension of `size` elements: negative ones count from the
/// end, and what lies outside (an error of the data) is brought inside, so that nothing outside the
/// tensor is read.
static Value toPosition(OpBuilder &builder, Location loc, Value index, Value size,
                        bool nonNegative) {
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  index = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), index);
  if (!nonNegative) {
    Value isNegative = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, index, zero);
    Value fromEnd = arith::AddIOp::create(builder, loc, index, size);
    index = arith::SelectOp::create(builder, loc, isNegative, fromEnd, index);
  }
  index = arith::MaxSIOp::create(builder, loc, index, zero);
  Value last = arith::SubIOp::create(builder, loc, size, one);
  return arith::MinSIOp::create(builder, loc, index, last);
}

/// The shape-arithmetic case of Gather: picking sizes out of a shape.
static bool gatherContents(NodeImporter &node) {
  ImportedValue &data = node.input(0), &indices = node.input(1);
  if (!data.contents || !indices.contents || data.rank() != 1 || indices.rank() > 1)
    return false;
  SmallVector<SymbolicSize> contents;
  int64_t size = data.contents->size();
  for (const SymbolicSize &index : *indices.contents) {
    std::optional<int64_t> position = index.constant();
    if (!position || *position < -size || *position >= size)
      return false;
    contents.push_back((*data.contents)[*position < 0 ? *position + size : *position]);
  }
  (void)node.setContents(0, std::move(contents), indices.shape, data.dataType);
  return true;
}

LogicalResult importGather(NodeImporter &node) {
  if (failed(node.expectInputs(2, 2)) || failed(expectIndices(node, 1)))
    return failure();
  if (gatherContents(node))
    return success();
  ImportedValue &data = node.input(0), &indices = node.input(1);
  FailureOr<int64_t> axis = node.axis(node.integer("axis", 0), data.rank());
  if (failed(axis))
    return failure();
  // Result dimensions: those before the axis, those of the indices, those after the axis.
  Shape shape(data.shape.begin(), data.shape.begin() + *axis);
  llvm::append_range(shape, indices.shape);
  shape.append(data.shape.begin() + *axis + 1, data.shape.end());
  if (failed(node.product(shape)))
    return failure();
  Value table = node.tensor(0), positions = node.tensor(1);
  Value size = node.graph.sizeValue(data.shape[*axis]);
  SmallVector<AffineExpr> indexMap;
  for (size_t i = 0; i < indices.rank(); ++i)
    indexMap.push_back(node.builder.getAffineDimExpr(*axis + i));
  AffineMap map = AffineMap::get(shape.size(), 0, indexMap, node.builder.getContext());
  bool nonNegative = indices.nonNegative;
  Value result =
      node.parallel({positions}, {map}, shape, node.graph.elementType(data.dataType),
                    [&](OpBuilder &builder, Location loc, ValueRange operands) -> Value {
                      SmallVector<Value> where;
                      for (size_t i = 0; i < data.rank(); ++i) {
                        if (static_cast<int64_t>(i) == *axis) {
                          where.push_back(toPosition(builder, loc, operands[0], size, nonNegative));
                          continue;
                        }
                        size_t dimension =
                            static_cast<int64_t>(i) < *axis ? i : i + indices.rank() - 1;
                        where.push_back(linalg::IndexOp::create(builder, loc, dimension));
                      }
                      return tensor::ExtractOp::create(builder, loc, table, where);
                    });
  return node.setOutput(0, result, shape, data.dataType);
}

LogicalResult importGatherElements(NodeImporter &node) {
  if (failed(node.expectInputs(2, 2)) || failed(expectIndices(node, 1)))
    return failure();
  ImportedValue &data = node.input(0), &indices = node.input(1);
  FailureOr<int64_t> axis = node.axis(node.integer("axis", 0), data.rank());
  if (failed(axis))
    return failure();
  if (indices.rank() != data.rank())
    return node.fail("data and indices are of ranks " + Twine(data.rank()) + " and " +
                     Twine(indices.rank()) + ", expected equal ranks");
  for (size_t i = 0; i < data.rank(); ++i) {
    std::optional<SymbolicSize> rest = SymbolicSize::subtract(data.shape[i], indices.shape[i]);
    if (static_cast<int64_t>(i) != *axis && (!rest || !rest->isAtLeast(0)))
      return node.fail("dimension " + Twine(i) + " of the indices, " +
                       node.graph.toString(indices.shape[i]) + ", may exceed that of the data, " +
                       node.graph.toString(data.shape[i]));
  }
  Value table = node.tensor(0), positions = node.tensor(1);
  Value size = node.graph.sizeValue(data.shape[*axis]);
  Shape shape = indices.shape;
  bool nonNegative = indices.nonNegative;
  AffineMap map = node.builder.getMultiDimIdentityMap(shape.size());
  Value result = node.parallel(
      {positions}, {map}, shape, node.graph.elementType(data.dataType),
      [&](OpBuilder &builder, Location loc, ValueRange operands) -> Value {
        SmallVector<Value> where;
        for (size_t i = 0; i < shape.size(); ++i)
          where.push_back(static_cast<int64_t>(i) == *axis
                              ? toPosition(builder, loc, operands[0], size, nonNegative)
                              : Value(linalg::IndexOp::create(builder, loc, i)));
        return tensor::ExtractOp::create(builder, loc, table, where);
      });
  return node.setOutput(0, result, shape, data.dataType);
}

LogicalResult importGatherND(NodeImporter &node) {
  if (failed(node.expectInputs(2, 2)) || failed(expectIndices(node, 1)))
    return failure();
  ImportedValue &data = node.input(0), &indices = node.input(1);
  int64_t batchDims = node.integer("batch_dims", 0);
  if (indices.rank() == 0)
    return node.fail("the indices are a scalar, expected at least one dimension");
  std::optional<int64_t> depth = indices.shape.back().constant();
  if (!depth)
    return node.fail("the last dimension of the indices is not constant");
  if (batchDims < 0 || batchDims >= static_cast<int64_t>(std::min(data.rank(), indices.rank())) ||
      *depth < 1 || *depth > static_cast<int64_t>(data.rank()) - batchDims)
    return node.fail("indices of shape " + node.graph.toString(indices.shape) +
                     " do not fit data of shape " + node.graph.toString(data.shape) + " with " +
                     Twine(batchDims) + " batch dimensions");
  for (int64_t i = 0; i < batchDims; ++i)
    if (data.shape[i] != indices.shape[i])
      return node.fail("batch dimension " + Twine(i) + " is " + node.graph.toString(data.shape[i]) +
                       " and " + node.graph.toString(indices.shape[i]) + ", expected equal sizes");
  size_t outer = indices.rank() - 1, inner = batchDims + *depth;
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.append(data.shape.begin() + inner, data.shape.end());
  if (failed(node.product(shape)))
    return failure();
  Value table = node.tensor(0), positions = node.tensor(1);
  // One operand for each column of the indices.
  SmallVector<Value> columns, sizes;
  SmallVector<AffineMap> maps;
  Shape columnShape(indices.shape.begin(), indices.shape.end() - 1);
  Shape sliceShape = indices.shape;
  sliceShape.back() = SymbolicSize(1);
  for (int64_t i = 0; i < *depth; ++i) {
    Value column = positions;
    if (*depth != 1) {
      Shape offsets(indices.rank(), SymbolicSize(0));
      offsets.back() = SymbolicSize(i);
      column = node.slice(positions, offsets, sliceShape, SmallVector<int64_t>(indices.rank(), 1));
    }
    column = node.reshape(column, sliceShape, columnShape);
    if (!column)
      return failure();
    columns.push_back(column);
    sizes.push_back(node.graph.sizeValue(data.shape[batchDims + i]));
    maps.push_back(AffineMap::getMultiDimIdentityMap(shape.size(), node.builder.getContext())
                       .getMajorSubMap(outer));
  }
  bool nonNegative = indices.nonNegative;
  Value result = node.parallel(
      columns, maps, shape, node.graph.elementType(data.dataType),
      [&](OpBuilder &builder, Location loc, ValueRange operands) -> Value {
        SmallVector<Value> where;
        for (int64_t i = 0; i < batchDims; ++i)
          where.push_back(linalg::IndexOp::create(builder, loc, i));
        for (int64_t i = 0; i < *depth; ++i)
          where.push_back(toPosition(builder, loc, operands[i], sizes[i], nonNegative));
        for (size_t i = inner; i < data.rank(); ++i)
          where.push_back(linalg::IndexOp::create(builder, loc, outer + i - inner));
        return tensor::ExtractOp::create(builder, loc, table, where);
      });
  return node.setOutput(0, result, shape, data.dataType);
}

//===------------------------------------------------------------------------------------------===//
// TopK
//===------------------------------------------------------------------------------------------===//

/// The rank of every element among those of its row: the number of elements that come before it in
/// the order by value and, among equal ones, by index. A permutation of the row, whatever it holds.
static Value rankElements(NodeImporter &node, Value keys, ArrayRef<SymbolicSize> shape,
                          bool largest) {
  OpBuilder &builder = node.builder;
  Location loc = node.location;
  Type i64 = builder.getI64Type();
  size_t rank = shape.size();
  // Iterations: the dimensions of the tensor, then the element that is compared with.
  SmallVector<AffineExpr> own, other;
  for (size_t i = 0; i < rank; ++i) {
    own.push_back(builder.getAffineDimExpr(i));
    other.push_back(builder.getAffineDimExpr(i + 1 == rank ? rank : i));
  }
  MLIRContext *context = builder.getContext();
  AffineMap ownMap = AffineMap::get(rank + 1, 0, own, context);
  AffineMap otherMap = AffineMap::get(rank + 1, 0, other, context);
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  Value init = node.filled(shape, builder.getI64IntegerAttr(0));
  bool isFloat = isa<FloatType>(cast<RankedTensorType>(keys.getType()).getElementType());
  auto compare = [&](OpBuilder &inner, Value a, Value b, bool equal) -> Value {
    if (isFloat)
      return arith::CmpFOp::create(inner, loc,
                                   equal     ? arith::CmpFPredicate::OEQ
                                   : largest ? arith::CmpFPredicate::OGT
                                             : arith::CmpFPredicate::OLT,
                                   a, b);
    return arith::CmpIOp::create(inner, loc,
                                 equal     ? arith::CmpIPredicate::eq
                                 : largest ? arith::CmpIPredicate::sgt
                                           : arith::CmpIPredicate::slt,
                                 a, b);
  };
  return linalg::GenericOp::create(builder, loc, init.getType(), ValueRange{keys, keys}, init,
                                   ArrayRef<AffineMap>{ownMap, otherMap, ownMap}, iterators,
                                   [&](OpBuilder &inner, Location, ValueRange values) {
                                     Value before = compare(inner, values[1], values[0], false);
                                     Value same = compare(inner, values[1], values[0], true);
                                     Value i = linalg::IndexOp::create(inner, loc, rank - 1);
                                     Value j = linalg::IndexOp::create(inner, loc, rank);
                                     Value lower = arith::CmpIOp::create(
                                         inner, loc, arith::CmpIPredicate::ult, j, i);
                                     Value tie = arith::AndIOp::create(inner, loc, same, lower);
                                     Value counts = arith::OrIOp::create(inner, loc, before, tie);
                                     Value one = arith::ExtUIOp::create(inner, loc, i64, counts);
                                     Value sum = arith::AddIOp::create(inner, loc, values[2], one);
                                     linalg::YieldOp::create(inner, loc, sum);
                                   })
      .getResult(0);
}

/// indices[..., r] = the index of the element of rank r.
static Value invertRanks(NodeImporter &node, Value ranks, ArrayRef<SymbolicSize> shape) {
  OpBuilder &builder = node.builder;
  Location loc = node.location;
  Type i64 = builder.getI64Type();
  size_t rank = shape.size();
  SmallVector<AffineExpr> result, source;
  for (size_t i = 0; i < rank; ++i) {
    result.push_back(builder.getAffineDimExpr(i));
    source.push_back(builder.getAffineDimExpr(i + 1 == rank ? rank : i));
  }
  MLIRContext *context = builder.getContext();
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  Value init = node.filled(shape, builder.getI64IntegerAttr(0));
  return linalg::GenericOp::create(
             builder, loc, init.getType(), ranks, init,
             ArrayRef<AffineMap>{AffineMap::get(rank + 1, 0, source, context),
                                 AffineMap::get(rank + 1, 0, result, context)},
             iterators,
             [&](OpBuilder &inner, Location, ValueRange values) {
               Value r = linalg::IndexOp::create(inner, loc, rank - 1);
               Value i = linalg::IndexOp::create(inner, loc, rank);
               r = arith::IndexCastOp::create(inner, loc, i64, r);
               i = arith::IndexCastOp::create(inner, loc, i64, i);
               Value hit =
                   arith::CmpIOp::create(inner, loc, arith::CmpIPredicate::eq, values[0], r);
               Value zero = arith::ConstantIntOp::create(inner, loc, 0, 64);
               Value term = arith::SelectOp::create(inner, loc, hit, i, zero);
               Value sum = arith::AddIOp::create(inner, loc, values[1], term);
               linalg::YieldOp::create(inner, loc, sum);
             })
      .getResult(0);
}

LogicalResult importTopK(NodeImporter &node) {
  if (failed(node.expectInputs(2, 2)))
    return failure();
  ImportedValue &input = node.input(0);
  FailureOr<int64_t> axis = node.axis(node.integer("axis", -1), input.rank());
  if (failed(axis))
    return failure();
  bool largest = node.integer("largest", 1) != 0;
  FailureOr<SmallVector<SymbolicSize>> k = node.sizeList(1, "k");
  if (failed(k))
    return failure();
  if (k->size() != 1)
    return node.fail("k holds " + Twine(k->size()) + " numbers, expected one");
  std::optional<SymbolicSize> rest = SymbolicSize::subtract(input.shape[*axis], k->front());
  if (!rest || !rest->isAtLeast(0) || !k->front().isAtLeast(1))
    return node.fail("k is " + node.graph.toString(k->front()) + ", expected 1 to " +
                     node.graph.toString(input.shape[*axis]));
  if (*axis + 1 != static_cast<int64_t>(input.rank()))
    return node.fail("axis " + Twine(*axis) + " is not supported, expected the last one");
  Value x = node.tensor(0), keys = x;
  OpBuilder &builder = node.builder;
  Location loc = node.location;
  Type element = node.graph.elementType(input.dataType);
  if (isa<FloatType>(element)) {
    // NaN compares with nothing: as the worst value it has a place in the order.
    double worst = largest ? -std::numeric_limits<double>::infinity()
                           : std::numeric_limits<double>::infinity();
    Value bound = node.broadcast(node.scalarTensor(element, worst), {}, input.shape);
    Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, x, x);
    keys = arith::SelectOp::create(builder, loc, isNaN, bound, x);
  } else if (input.dataType != TensorProto::INT64 && input.dataType != TensorProto::INT32) {
    return node.fail("type " + dataTypeName(input.dataType) + " is not supported");
  }
  Shape shape = input.shape;
  shape.back() = k->front();
  Value indices = invertRanks(node, rankElements(node, keys, input.shape, largest), shape);
  AffineMap identity = builder.getMultiDimIdentityMap(shape.size());
  Value values = node.parallel(
      {indices}, {identity}, shape, element,
      [&](OpBuilder &inner, Location, ValueRange operands) -> Value {
        SmallVector<Value> where;
        for (size_t i = 0; i + 1 < shape.size(); ++i)
          where.push_back(linalg::IndexOp::create(inner, loc, i));
        where.push_back(arith::IndexCastOp::create(inner, loc, inner.getIndexType(), operands[0]));
        return tensor::ExtractOp::create(inner, loc, x, where);
      });
  if (failed(node.setOutput(0, values, shape, input.dataType)) ||
      failed(node.setOutput(1, indices, shape, TensorProto::INT64)))
    return failure();
  if (node.wantsOutput(1))
    node.output(1).nonNegative = true;
  return success();
}

} // namespace mlir::moec::onnx_import
