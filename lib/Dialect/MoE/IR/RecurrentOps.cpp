#include "OpSupport.h"

using namespace mlir;
using namespace mlir::moec::moe;

LogicalResult CausalConvOp::verify() {
  RankedTensorType input = getInput().getType(), weight = getWeight().getType();
  if (!weight.hasStaticShape())
    return emitOpError() << "expects a weight of static shape, got " << weight;
  int64_t tokens = input.getDimSize(0), channels = weight.getDimSize(0),
          size = weight.getDimSize(1);
  if (size < 2)
    return emitOpError() << "expects a weight of at least 2 taps, got " << size;
  if (failed(checkShape(*this, "input", getInput(), {tokens, channels})) ||
      failed(checkState(*this, getState().getType(), input.getElementType(), {size - 1, channels})))
    return failure();
  return checkStepSequences(*this, tokens, getPositions(), getSequenceOffsets(), getStateSlots());
}

LogicalResult CausalConvOp::reifyResultShapes(OpBuilder &builder,
                                              ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getInput(), shapes);
}

LogicalResult DecayGateOp::verify() {
  ArrayRef<int64_t> shape = getInput().getType().getShape();
  if (llvm::any_of(shape.drop_front(), ShapedType::isDynamic))
    return emitOpError() << "expects static heads and channels, got " << getInput().getType();
  if (failed(checkShape(*this, "bias", getBias(), shape.drop_front())) ||
      failed(checkShape(*this, "result", getResult(), shape)))
    return failure();
  if (int64_t heads = getALog().getType().getDimSize(0);
      ShapedType::isDynamic(heads) || heads < shape[1])
    return emitOpError() << "expects an a_log of at least " << shape[1] << " heads, got "
                         << getALog().getType();
  if (std::optional<APFloat> bound = getLowerBound(); bound && !(bound->convertToDouble() < 0))
    return emitOpError() << "expects a lower_bound below 0, got " << bound->convertToDouble();
  return success();
}

LogicalResult DecayGateOp::reifyResultShapes(OpBuilder &builder,
                                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getInput(), shapes);
}

bool DecayGateOp::isTokenOperand(unsigned index) { return index == 0; }

LogicalResult DeltaRuleOp::verify() {
  ArrayRef<int64_t> query = getQuery().getType().getShape();
  ArrayRef<int64_t> value = getValue().getType().getShape();
  int64_t tokens = query[0], keyHeads = query[1], keyDim = query[2];
  int64_t heads = value[1], valueDim = value[2];
  if (llvm::any_of(ArrayRef{keyHeads, keyDim, heads, valueDim}, ShapedType::isDynamic))
    return emitOpError() << "expects static heads and dimensions, got " << getQuery().getType()
                         << " and " << getValue().getType();
  if (keyHeads == 0 || heads % keyHeads != 0)
    return emitOpError() << "expects a number of heads that is a multiple of the " << keyHeads
                         << " key heads, got " << heads;
  bool perChannel = getDecay().getType().getRank() == 3;
  SmallVector<int64_t> decay = {tokens, heads};
  if (perChannel)
    decay.push_back(keyDim);
  if (failed(checkShape(*this, "key", getKey(), query)) ||
      failed(checkShape(*this, "value", getValue(), {tokens, heads, valueDim})) ||
      failed(checkShape(*this, "decay", getDecay(), decay)) ||
      failed(checkShape(*this, "beta", getBeta(), {tokens, heads})) ||
      failed(checkShape(*this, "result", getResult(), {tokens, heads, valueDim})) ||
      failed(checkState(*this, getState().getType(), Float32Type::get(getContext()),
                        {heads, keyDim, valueDim})))
    return failure();
  if (std::optional<APFloat> epsilon = getNormEpsilon();
      epsilon && (epsilon->isNegative() || epsilon->isNaN()))
    return emitOpError() << "expects a norm_epsilon of at least 0";
  return checkStepSequences(*this, tokens, getPositions(), getSequenceOffsets(), getStateSlots());
}

LogicalResult DeltaRuleOp::reifyResultShapes(OpBuilder &builder,
                                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getValue(), shapes);
}
