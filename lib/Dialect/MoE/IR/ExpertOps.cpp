#include "OpSupport.h"

using namespace mlir;
using namespace mlir::moec::moe;

static LogicalResult checkExpertWeight(Operation *op, StringRef what, Value weight) {
  if (getLogicalShape(weight.getType()).size() == 3)
    return success();
  return op->emitOpError() << "expects " << what << " [experts, N, K], got " << weight.getType();
}

/// tokens * k, or dynamic.
static int64_t countPairs(int64_t tokens, int64_t k) {
  return ShapedType::isDynamic(tokens) || ShapedType::isDynamic(k) ? ShapedType::kDynamic
                                                                   : tokens * k;
}

LogicalResult ExpertsOp::verify() {
  if (failed(checkExpertWeight(*this, "gate_up", getGateUp())) ||
      failed(checkExpertWeight(*this, "down", getDown())))
    return failure();
  ArrayRef<int64_t> gateUp = getLogicalShape(getGateUp().getType());
  ArrayRef<int64_t> down = getLogicalShape(getDown().getType());
  ArrayRef<int64_t> input = getInput().getType().getShape();
  int64_t tokens = input[0], k = getIndices().getType().getDimSize(1);
  int64_t experts = gateUp[0], inner = gateUp[1] / 2;
  if (gateUp[1] % 2 != 0)
    return emitOpError() << "expects an even number of gate_up rows, got " << gateUp[1];
  if (failed(checkShape(*this, "gate_up", getGateUp(), {experts, 2 * inner, input[1]})) ||
      failed(checkShape(*this, "down", getDown(), {experts, down[1], inner})) ||
      failed(checkShape(*this, "indices", getIndices(), {tokens, k})) ||
      failed(checkShape(*this, "weights", getWeights(), {tokens, k})) ||
      failed(checkShape(*this, "gate_up_bias", getGateUpBias(), {experts, 2 * inner})) ||
      failed(checkShape(*this, "down_bias", getDownBias(), {experts, down[1]})) ||
      failed(checkShape(*this, "residual", getResidual(), {tokens, down[1]})))
    return failure();
  return checkShape(*this, "result", getResult(), {tokens, down[1]});
}

LogicalResult ExpertsOp::reifyResultShapes(OpBuilder &builder,
                                           ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getInput(), shapes);
}

bool ExpertsOp::isTokenOperand(unsigned index) {
  Value operand = (*this)->getOperand(index);
  return operand == getInput() || operand == getIndices() || operand == getWeights() ||
         operand == getResidual();
}

bool ExpertsOp::hasResidual() { return static_cast<bool>(getResidual()); }
void ExpertsOp::setResidual(Value residual) { getResidualMutable().assign(residual); }

LogicalResult GroupedLinearOp::verify() {
  if (failed(checkExpertWeight(*this, "weight", getWeight())))
    return failure();
  ArrayRef<int64_t> weight = getLogicalShape(getWeight().getType());
  int64_t experts = weight[0], n = weight[1], k = weight[2];
  if (auto topK = static_cast<int64_t>(getTopK()); topK < 1)
    return emitOpError() << "expects top_k of at least 1, got " << topK;
  if (getActivation() && n % 2 != 0)
    return emitOpError() << "expects an even number of rows with an activation, got " << n;
  int64_t rows = getInput().getType().getDimSize(0);
  int64_t pairs = getGather() ? countPairs(rows, getTopK()) : rows;
  if (failed(checkShape(*this, "input", getInput(), {rows, k})) ||
      failed(checkShape(*this, "offsets", getOffsets(), {experts + 1})) ||
      failed(checkShape(*this, "pairs", getPairs(), {pairs})) ||
      failed(checkShape(*this, "bias", getBias(), {experts, n})))
    return failure();
  return checkShape(*this, "result", getResult(), {pairs, getActivation() ? n / 2 : n});
}

LogicalResult GroupedLinearOp::reifyResultShapes(OpBuilder &builder,
                                                 ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getPairs(), shapes);
}

LogicalResult CombineOp::verify() {
  ArrayRef<int64_t> weights = getWeights().getType().getShape();
  int64_t tokens = weights[0], k = weights[1], hidden = getResult().getType().getDimSize(1);
  if (failed(checkShape(*this, "input", getInput(), {countPairs(tokens, k), hidden})) ||
      failed(checkShape(*this, "indices", getIndices(), {tokens, k})) ||
      failed(checkShape(*this, "residual", getResidual(), {tokens, hidden})))
    return failure();
  return checkShape(*this, "result", getResult(), {tokens, hidden});
}

LogicalResult CombineOp::reifyResultShapes(OpBuilder &builder,
                                           ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getWeights(), shapes);
}

// The rows of `input` are pairs, k of them for each token: cutting along the tokens cuts it in
// another measure.
bool CombineOp::isTokenOperand(unsigned index) {
  Value operand = (*this)->getOperand(index);
  return operand != getInput();
}

bool CombineOp::hasResidual() { return static_cast<bool>(getResidual()); }
void CombineOp::setResidual(Value residual) { getResidualMutable().assign(residual); }

LogicalResult GateOp::verify() {
  ArrayRef<int64_t> shape = getGate().getType().getShape();
  if (failed(checkShape(*this, "up", getUp(), shape)) ||
      failed(checkShape(*this, "result", getResult(), shape)))
    return failure();
  if (getActivation().getInterleaved())
    return emitOpError() << "expects an activation that is not interleaved";
  return success();
}

LogicalResult GateOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getGate(), shapes);
}

bool GateOp::isTokenOperand(unsigned) { return true; }
