#include "OpSupport.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec::moe;

static std::string describe(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "[";
  llvm::interleaveComma(shape, stream, [&](int64_t size) {
    if (ShapedType::isDynamic(size))
      stream << "?";
    else
      stream << size;
  });
  stream << "]";
  return text;
}

LogicalResult mlir::moec::moe::checkShape(Operation *op, StringRef what, Value value,
                                          ArrayRef<int64_t> expected) {
  if (!value)
    return success();
  ArrayRef<int64_t> shape = getLogicalShape(value.getType());
  if (shape.size() == expected.size() && llvm::all_of(llvm::zip(shape, expected), [](auto pair) {
        return compatible(std::get<0>(pair), std::get<1>(pair));
      }))
    return success();
  return op->emitOpError() << "expects " << what << " of shape " << describe(expected) << ", got "
                           << describe(shape);
}

LogicalResult mlir::moec::moe::checkStepSequences(Operation *op, int64_t tokens, Value positions,
                                                  Value offsets, Value slots) {
  int64_t ends = cast<RankedTensorType>(offsets.getType()).getDimSize(0);
  if (ends == 0)
    return op->emitOpError() << "expects at least one sequence offset";
  int64_t sequences = ShapedType::isDynamic(ends) ? ends : ends - 1;
  if (failed(checkShape(op, "positions", positions, {tokens})))
    return failure();
  return checkShape(op, "state_slots", slots, {sequences});
}

LogicalResult mlir::moec::moe::checkState(Operation *op, StateType state, Type element,
                                          ArrayRef<int64_t> shape) {
  auto expected = StateType::get(op->getContext(), shape, element);
  if (state == expected)
    return success();
  return op->emitOpError() << "expects a state of type " << expected << ", got " << state;
}

SmallVector<OpFoldResult> mlir::moec::moe::getMixedDims(OpBuilder &builder, Location loc,
                                                        Value value) {
  return tensor::getMixedSizes(builder, loc, value);
}

LogicalResult mlir::moec::moe::reifyLike(OpBuilder &builder, Operation *op, Value like,
                                         ReifiedRankedShapedTypeDims &shapes) {
  shapes.push_back(getMixedDims(builder, op->getLoc(), like));
  return success();
}

LogicalResult mlir::moec::moe::reifyRows(OpBuilder &builder, Operation *op, Value like,
                                         ReifiedRankedShapedTypeDims &shapes) {
  OpFoldResult rows = tensor::getMixedSize(builder, op->getLoc(), like, 0);
  for (Value result : op->getResults()) {
    SmallVector<OpFoldResult> shape = {rows};
    for (int64_t size : cast<RankedTensorType>(result.getType()).getShape().drop_front())
      shape.push_back(builder.getIndexAttr(size));
    shapes.push_back(std::move(shape));
  }
  return success();
}
