#include "OpSupport.h"

using namespace mlir;
using namespace mlir::moec::moe;

LogicalResult CompressOp::verify() {
  RankedTensorType keys = getKeys().getType(), bias = getBias().getType();
  int64_t tokens = keys.getDimSize(0), width = keys.getDimSize(1);
  int64_t channels = getResult().getType().getDimSize(1);
  if (ShapedType::isDynamic(width) || ShapedType::isDynamic(channels) || channels < 1 ||
      (width != channels && width != 2 * channels))
    return emitOpError()
           << "expects keys of as many channels as the result or, with overlap, twice "
              "as many, got "
           << keys << " for " << getResult().getType();
  if (!bias.hasStaticShape() || bias.getDimSize(0) < 1)
    return emitOpError() << "expects a bias of static shape with a row for each token of a window, "
                            "got "
                         << bias;
  if (failed(checkShape(*this, "gates", getGates(), {tokens, width})) ||
      failed(checkShape(*this, "bias", getBias(), {bias.getDimSize(0), width})) ||
      failed(checkShape(*this, "result", getResult(), {tokens, channels})) ||
      failed(checkState(*this, getState().getType(), Float32Type::get(getContext()),
                        {hasOverlap() ? 6 : 3, channels})))
    return failure();
  return checkStepSequences(*this, tokens, getPositions(), getSequenceOffsets(), getStateSlots());
}

LogicalResult CompressOp::reifyResultShapes(OpBuilder &builder,
                                            ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getKeys(), shapes);
}

/// A cache whose values are rows of `dim` elements.
static LogicalResult checkRows(Operation *op, StringRef what, CacheType cache, int64_t dim) {
  if (cache.getKvHeads() == 1 && cache.getValueDim() == dim)
    return success();
  return op->emitOpError() << "expects " << what << " of one head with values of " << dim
                           << " elements, got " << cache;
}

/// Ratio and stride of entries, and the sizes of what says where a step's tokens lie.
static LogicalResult checkEntries(Operation *op, int64_t tokens, int64_t ratio, int64_t stride,
                                  Value positions, Value tokenSequences) {
  for (auto [name, value] : {std::pair("ratio", ratio), {"stride", stride}})
    if (value < 1)
      return op->emitOpError() << "expects a " << name << " of at least 1, got " << value;
  if (failed(checkShape(op, "positions", positions, {tokens})))
    return failure();
  return checkShape(op, "token_sequences", tokenSequences, {tokens});
}

LogicalResult SelectEntriesOp::verify() {
  ArrayRef<int64_t> query = getQuery().getType().getShape();
  if (ShapedType::isDynamic(query[1]) || ShapedType::isDynamic(query[2]))
    return emitOpError() << "expects static heads and dimensions, got " << getQuery().getType();
  if (getResult().getType().isDynamicDim(1) || getResult().getType().getDimSize(1) < 1)
    return emitOpError() << "expects a static number of entries for each token, got "
                         << getResult().getType();
  if (failed(checkShape(*this, "weights", getWeights(), {query[0], query[1]})) ||
      failed(checkShape(*this, "result", getResult(),
                        {query[0], getResult().getType().getDimSize(1)})) ||
      failed(checkRows(*this, "a cache", getEntries().getType(), query[2])))
    return failure();
  return checkEntries(*this, query[0], getRatio(), getStride(), getPositions(),
                      getTokenSequences());
}

LogicalResult SelectEntriesOp::reifyResultShapes(OpBuilder &builder,
                                                 ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getQuery(), shapes);
}

bool SelectEntriesOp::isTokenOperand(unsigned index) {
  Value operand = (*this)->getOperand(index);
  return operand != getEntries() && operand != getBlockTable();
}

LogicalResult CompressedAttentionOp::verify() {
  ArrayRef<int64_t> query = getQuery().getType().getShape();
  if (ShapedType::isDynamic(query[1]) || ShapedType::isDynamic(query[2]))
    return emitOpError() << "expects static heads and dimensions, got " << getQuery().getType();
  if (failed(checkShape(*this, "result", getResult(), query)) ||
      failed(checkRows(*this, "a cache", getCache().getType(), query[2])) ||
      failed(checkRows(*this, "entries", getEntries().getType(), query[2])) ||
      failed(checkShape(*this, "sinks", getSinks(), {query[1]})) ||
      failed(checkShape(*this, "indices", getIndices(), {query[0], ShapedType::kDynamic})))
    return failure();
  if (auto window = static_cast<int64_t>(getWindow()); window < 1)
    return emitOpError() << "expects a window of at least 1, got " << window;
  return checkEntries(*this, query[0], getRatio(), getStride(), getPositions(),
                      getTokenSequences());
}

LogicalResult CompressedAttentionOp::reifyResultShapes(OpBuilder &builder,
                                                       ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getQuery(), shapes);
}

bool CompressedAttentionOp::isTokenOperand(unsigned index) {
  Value operand = (*this)->getOperand(index);
  return operand != getCache() && operand != getEntries() && operand != getBlockTable() &&
         operand != getSinks();
}
