#include "OpSupport.h"

using namespace mlir;
using namespace mlir::moec::moe;

LogicalResult LinearOp::verify() {
  ArrayRef<int64_t> weight = getLogicalShape(getWeight().getType());
  if (weight.size() != 2)
    return emitOpError() << "expects a weight [N, K], got " << getWeight().getType();
  int64_t tokens = getInput().getType().getDimSize(0), n = weight[0], k = weight[1];
  if (failed(checkShape(*this, "input", getInput(), {tokens, k})) ||
      failed(checkShape(*this, "result", getResult(), {tokens, n})) ||
      failed(checkShape(*this, "bias", getBias(), {n})) ||
      failed(checkShape(*this, "residual", getResidual(), {tokens, n})) ||
      failed(checkShape(*this, "norm weight", getNormWeight(), {k})))
    return failure();
  if (static_cast<bool>(getNormWeight()) != getEpsilon().has_value())
    return emitOpError() << "expects 'epsilon' exactly when there is a norm weight";
  return success();
}

LogicalResult LinearOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getInput(), shapes);
}

bool LinearOp::isTokenOperand(unsigned index) {
  Value operand = (*this)->getOperand(index);
  return operand == getInput() || operand == getResidual();
}

bool LinearOp::hasResidual() { return static_cast<bool>(getResidual()); }
void LinearOp::setResidual(Value residual) { getResidualMutable().assign(residual); }

bool LinearOp::hasNorm() { return static_cast<bool>(getNormWeight()); }
OpOperand &LinearOp::getNormalizedOperand() { return getInputMutable(); }
void LinearOp::setNorm(Value weight, FloatAttr epsilon) {
  getNormWeightMutable().assign(weight);
  setEpsilonAttr(epsilon);
}

LogicalResult HeadLinearOp::verify() {
  ArrayRef<int64_t> weight = getWeight().getType().getShape();
  int64_t tokens = getInput().getType().getDimSize(0), heads = weight[0];
  int64_t n = weight[getTransposed() ? 2 : 1], k = weight[getTransposed() ? 1 : 2];
  if (failed(checkShape(*this, "input", getInput(), {tokens, heads, k})))
    return failure();
  return checkShape(*this, "result", getResult(), {tokens, heads, n});
}

LogicalResult HeadLinearOp::reifyResultShapes(OpBuilder &builder,
                                              ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getInput(), shapes);
}

bool HeadLinearOp::isTokenOperand(unsigned index) { return index == 0; }

LogicalResult EmbeddingOp::verify() {
  return checkShape(*this, "result", getResult(),
                    {getIds().getType().getDimSize(0), getTable().getType().getDimSize(1)});
}

LogicalResult EmbeddingOp::reifyResultShapes(OpBuilder &builder,
                                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getIds(), shapes);
}

bool EmbeddingOp::isTokenOperand(unsigned index) { return index == 0; }

LogicalResult GatherRowsOp::verify() {
  if (getInput().getType().getElementType() != getResult().getType().getElementType())
    return emitOpError() << "expects the result's element type to be the input's";
  return checkShape(*this, "result", getResult(),
                    {getRows().getType().getDimSize(0), getInput().getType().getDimSize(1)});
}

LogicalResult GatherRowsOp::reifyResultShapes(OpBuilder &builder,
                                              ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getRows(), shapes);
}
