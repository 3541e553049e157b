#include "OpSupport.h"

using namespace mlir;
using namespace mlir::moec::moe;

/// Checks what all norms have in common.
static LogicalResult verifyNorm(Operation *op, Value input, Value weight, Value bias,
                                const APFloat &epsilon) {
  auto type = cast<RankedTensorType>(input.getType());
  if (type.getRank() < 1)
    return op->emitOpError() << "expects an input of at least one dimension";
  if (epsilon.isNegative() || epsilon.isNaN())
    return op->emitOpError() << "expects an epsilon of at least 0";
  int64_t width = type.getShape().back();
  if (failed(checkShape(op, "weight", weight, {width})))
    return failure();
  return checkShape(op, "bias", bias, {width});
}

LogicalResult RMSNormOp::verify() {
  if (getUnitOffset() && !getWeight())
    return emitOpError() << "expects a weight with 'unit_offset'";
  return verifyNorm(*this, getInput(), getWeight(), {}, getEpsilon());
}

LogicalResult RMSNormOp::reifyResultShapes(OpBuilder &builder,
                                           ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getInput(), shapes);
}

bool RMSNormOp::isTokenOperand(unsigned index) { return index == 0; }

LogicalResult LayerNormOp::verify() {
  return verifyNorm(*this, getInput(), getWeight(), getBias(), getEpsilon());
}

LogicalResult LayerNormOp::reifyResultShapes(OpBuilder &builder,
                                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getInput(), shapes);
}

bool LayerNormOp::isTokenOperand(unsigned index) { return index == 0; }

LogicalResult GatedRMSNormOp::verify() {
  ArrayRef<int64_t> shape = getInput().getType().getShape();
  if (failed(checkShape(*this, "gate", getGate(), shape)) ||
      failed(checkShape(*this, "result", getResult(), shape)))
    return failure();
  return verifyNorm(*this, getInput(), getWeight(), {}, getEpsilon());
}

LogicalResult GatedRMSNormOp::reifyResultShapes(OpBuilder &builder,
                                                ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getInput(), shapes);
}

bool GatedRMSNormOp::isTokenOperand(unsigned index) { return index < 2; }
