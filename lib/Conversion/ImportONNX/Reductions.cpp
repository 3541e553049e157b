//===- Reductions.cpp - sums, extremes, softmax
//-----------------------------------------------------===//

#include "Handlers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include "onnx-ml.pb.h"

#include <limits>

namespace mlir::moec::onnx_import {

namespace {
enum class Reduction { Sum, Max, Min, Product };
} // namespace

static Attribute neutralElement(Reduction kind, Type element) {
  if (isa<FloatType>(element)) {
    double infinity = std::numeric_limits<double>::infinity();
    double value = kind == Reduction::Sum   ? 0.0
                   : kind == Reduction::Max ? -infinity
                   : kind == Reduction::Min ? infinity
                                            : 1.0;
    return FloatAttr::get(element, value);
  }
  unsigned width = element.getIntOrFloatBitWidth();
  APInt value = kind == Reduction::Sum   ? APInt::getZero(width)
                : kind == Reduction::Max ? APInt::getSignedMinValue(width)
                : kind == Reduction::Min ? APInt::getSignedMaxValue(width)
                                         : APInt(width, 1);
  return IntegerAttr::get(element, value);
}

static Value combine(OpBuilder &builder, Location loc, Reduction kind, Value a, Value b) {
  bool isFloat = isa<FloatType>(a.getType());
  switch (kind) {
  case Reduction::Sum:
    return isFloat ? Value(arith::AddFOp::create(builder, loc, a, b))
                   : Value(arith::AddIOp::create(builder, loc, a, b));
  case Reduction::Max:
    return isFloat ? Value(arith::MaximumFOp::create(builder, loc, a, b))
                   : Value(arith::MaxSIOp::create(builder, loc, a, b));
  case Reduction::Min:
    return isFloat ? Value(arith::MinimumFOp::create(builder, loc, a, b))
                   : Value(arith::MinSIOp::create(builder, loc, a, b));
  case Reduction::Product:
    return isFloat ? Value(arith::MulFOp::create(builder, loc, a, b))
                   : Value(arith::MulIOp::create(builder, loc, a, b));
  }
  llvm_unreachable("all kinds are handled");
}

/// Reduces the dimensions `axes` (sorted) of `value` away. Sums of narrow floats are in f32.
static Value reduce(NodeImporter &node, Value value, ArrayRef<SymbolicSize> shape,
                    ArrayRef<int64_t> axes, Reduction kind) {
  OpBuilder &builder = node.builder;
  Location loc = node.location;
  Shape kept;
  for (auto [i, size] : llvm::enumerate(shape))
    if (!llvm::is_contained(axes, static_cast<int64_t>(i)))
      kept.push_back(size);
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  bool wide = (element.isBF16() || element.isF16()) &&
              (kind == Reduction::Sum || kind == Reduction::Product);
  Type sumType = wide ? builder.getF32Type() : element;
  if (wide)
    value = arith::ExtFOp::create(builder, loc,
                                  cast<RankedTensorType>(value.getType()).clone(sumType), value);
  Value init = node.filled(kept, neutralElement(kind, sumType));
  Value result =
      linalg::ReduceOp::create(builder, loc, ValueRange{value}, ValueRange{init}, axes,
                               [&](OpBuilder &inner, Location, ValueRange values) {
                                 linalg::YieldOp::create(
                                     inner, loc, combine(inner, loc, kind, values[0], values[1]));
                               })
          ->getResult(0);
  if (wide)
    result = arith::TruncFOp::create(builder, loc, node.graph.tensorType(element, kept), result);
  return result;
}

LogicalResult importReduce(NodeImporter &node) {
  StringRef op = node.node.op_type();
  if (failed(node.expectInputs(1, 2)))
    return failure();
  ImportedValue &input = node.input(0);
  Type element = node.graph.elementType(input.dataType);
  using onnx::TensorProto;
  if (element.isInteger(1) || input.dataType == TensorProto::UINT8 ||
      input.dataType == TensorProto::UINT16 || input.dataType == TensorProto::UINT32 ||
      input.dataType == TensorProto::UINT64 || (op == "ReduceMean" && !isa<FloatType>(element)))
    return node.fail("type " + dataTypeName(input.dataType) + " is not supported");
  FailureOr<std::optional<SmallVector<int64_t>>> given = node.axes(1);
  if (failed(given))
    return failure();
  SmallVector<int64_t> axes;
  if (*given) {
    for (int64_t number : **given) {
      FailureOr<int64_t> axis = node.axis(number, input.rank());
      if (failed(axis))
        return failure();
      if (llvm::is_contained(axes, *axis))
        return node.fail("axis " + Twine(number) + " is given twice");
      axes.push_back(*axis);
    }
  }
  if (axes.empty()) {
    if (node.integer("noop_with_empty_axes", 0))
      return importIdentityOf(node, 0);
    for (size_t i = 0; i < input.rank(); ++i)
      axes.push_back(i);
  }
  llvm::sort(axes);
  Reduction kind = op == "ReduceMax"    ? Reduction::Max
                   : op == "ReduceMin"  ? Reduction::Min
                   : op == "ReduceProd" ? Reduction::Product
                                        : Reduction::Sum;
  Shape kept, dropped, unit;
  for (auto [i, size] : llvm::enumerate(input.shape)) {
    bool reduced = llvm::is_contained(axes, static_cast<int64_t>(i));
    unit.push_back(reduced ? SymbolicSize(1) : size);
    (reduced ? dropped : kept).push_back(size);
  }
  Value result =
      axes.empty() ? node.tensor(0) : reduce(node, node.tensor(0), input.shape, axes, kind);
  if (op == "ReduceMean") {
    FailureOr<SymbolicSize> count = node.product(dropped);
    if (failed(count))
      return failure();
    // The count as a number of the tensor's type, broadcast to the result.
    Value number = arith::IndexCastOp::create(
        node.builder, node.location, node.builder.getI64Type(), node.graph.sizeValue(*count));
    number = arith::SIToFPOp::create(node.builder, node.location, element, number);
    Value scalar = tensor::FromElementsOp::create(node.builder, node.location,
                                                  RankedTensorType::get({}, element), number);
    result = arith::DivFOp::create(node.builder, node.location, result,
                                   node.broadcast(scalar, {}, kept));
  }
  bool keepDims = node.integer("keepdims", 1) != 0;
  if (keepDims)
    result = node.reshape(result, kept, unit);
  return node.setOutput(0, result, keepDims ? unit : kept, input.dataType);
}

LogicalResult importSoftmax(NodeImporter &node) {
  if (failed(node.expectInputs(1, 1)))
    return failure();
  ImportedValue &input = node.input(0);
  Type element = node.graph.elementType(input.dataType);
  if (!isa<FloatType>(element))
    return node.fail("type " + dataTypeName(input.dataType) + " is not supported, expected floats");
  FailureOr<int64_t> axis = node.axis(node.integer("axis", -1), input.rank());
  if (failed(axis))
    return failure();
  OpBuilder &builder = node.builder;
  Location loc = node.location;
  Shape kept = input.shape;
  kept.erase(kept.begin() + *axis);
  Value x = node.tensor(0);
  // Inner steps of narrow floats are in f32.
  bool wide = element.isBF16() || element.isF16();
  auto narrowType = cast<RankedTensorType>(x.getType());
  Type work = wide ? builder.getF32Type() : element;
  if (wide)
    x = arith::ExtFOp::create(builder, loc, narrowType.clone(work), x);
  auto spread = [&](Value value) -> Value {
    return linalg::BroadcastOp::create(builder, loc, value, node.empty(input.shape, work),
                                       ArrayRef<int64_t>{*axis})
        ->getResult(0);
  };
  Value maximum = reduce(node, x, input.shape, {*axis}, Reduction::Max);
  Value shifted = arith::SubFOp::create(builder, loc, x, spread(maximum));
  Value exponential = math::ExpOp::create(builder, loc, shifted);
  Value sum = reduce(node, exponential, input.shape, {*axis}, Reduction::Sum);
  Value result;
  if (node.node.op_type() == "Softmax")
    result = arith::DivFOp::create(builder, loc, exponential, spread(sum));
  else
    result = arith::SubFOp::create(builder, loc, shifted,
                                   spread(math::LogOp::create(builder, loc, sum)));
  if (wide)
    result = arith::TruncFOp::create(builder, loc, narrowType, result);
  return node.setOutput(0, result, input.shape, input.dataType);
}

} // namespace mlir::moec::onnx_import
