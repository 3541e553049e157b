#include "OpSupport.h"

using namespace mlir;
using namespace mlir::moec::moe;

static LogicalResult checkRotary(Operation *op, RotaryAttr rotary, int64_t dim) {
  if (!rotary)
    return success();
  int64_t end = rotary.getOffset() + 2 * static_cast<int64_t>(rotary.getFrequencies().size());
  if (rotary.getOffset() < 0 || rotary.getFrequencies().empty() || end > dim)
    return op->emitOpError() << "expects the rotation to lie within the head's " << dim
                             << " elements, got [" << rotary.getOffset() << ", " << end << ")";
  return success();
}

/// Positions, token sequences and block table of one step agree in their sizes.
static LogicalResult checkStep(Operation *op, int64_t tokens, Value positions, Value sequences) {
  if (failed(checkShape(op, "positions", positions, {tokens})))
    return failure();
  return checkShape(op, "token_sequences", sequences, {tokens});
}

LogicalResult RopeOp::verify() {
  ArrayRef<int64_t> shape = getInput().getType().getShape();
  if (failed(checkShape(*this, "positions", getPositions(), {shape[0]})))
    return failure();
  return checkRotary(*this, getRotary(), shape[2]);
}

LogicalResult RopeOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getInput(), shapes);
}

bool RopeOp::isTokenOperand(unsigned) { return true; }

LogicalResult KVAppendOp::verify() {
  CacheType cache = getCache().getType();
  if (bool(getValue()) == cache.isShared())
    return emitOpError() << "expects " << (cache.isShared() ? "no values" : "values")
                         << " for a cache of form '" << stringifyCacheForm(cache.getForm()) << "'";
  int64_t tokens = getKey().getType().getDimSize(0);
  if (failed(checkShape(*this, "key", getKey(), {tokens, cache.getKvHeads(), cache.getKeyDim()})) ||
      failed(checkShape(*this, "value", getValue(),
                        {tokens, cache.getKvHeads(), cache.getValueDim()})) ||
      failed(checkStep(*this, tokens, getPositions(), getTokenSequences())))
    return failure();
  return checkRotary(*this, getRotaryAttr(), cache.getKeyDim());
}

OpOperand &KVAppendOp::getRotatedOperand() { return getKeyMutable(); }
Value KVAppendOp::getRotaryPositions() { return getPositions(); }
RotaryAttr KVAppendOp::getAppliedRotary() { return getRotaryAttr(); }
void KVAppendOp::setAppliedRotary(RotaryAttr rotary) { setRotaryAttr(rotary); }

LogicalResult AttentionOp::verify() {
  CacheType cache = getCache().getType();
  ArrayRef<int64_t> query = getQuery().getType().getShape();
  int64_t tokens = query[0], heads = query[1];
  if (failed(checkShape(*this, "query", getQuery(), {tokens, heads, cache.getKeyDim()})) ||
      failed(checkShape(*this, "result", getResult(), {tokens, heads, cache.getValueDim()})) ||
      failed(checkStep(*this, tokens, getPositions(), getTokenSequences())) ||
      failed(checkShape(*this, "sinks", getSinks(), {heads})) ||
      failed(checkShape(*this, "indices", getIndices(), {tokens, ShapedType::kDynamic})))
    return failure();
  if (ShapedType::isDynamic(heads) || heads % cache.getKvHeads() != 0)
    return emitOpError() << "expects a number of heads that is a multiple of the cache's "
                         << cache.getKvHeads() << " kv_heads, got " << heads;
  if (cache.getValueDim() == 0)
    return emitOpError() << "expects a cache with values, got " << cache;
  if (auto window = static_cast<int64_t>(getWindow()); window < 0)
    return emitOpError() << "expects a window of at least 0 (0: none), got " << window;
  return checkRotary(*this, getRotaryAttr(), cache.getKeyDim());
}

LogicalResult AttentionOp::reifyResultShapes(OpBuilder &builder,
                                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getQuery(), shapes);
}

bool AttentionOp::isTokenOperand(unsigned index) {
  Value operand = (*this)->getOperand(index);
  return operand != getCache() && operand != getBlockTable() && operand != getSinks();
}

LogicalResult SelectKeysOp::verify() {
  CacheType cache = getCache().getType();
  if (!cache.isShared() || cache.getKvHeads() != 1)
    return emitOpError() << "expects a cache of form 'shared' with one kv_head, got " << cache;
  ArrayRef<int64_t> query = getQuery().getType().getShape();
  int64_t tokens = query[0], heads = query[1], topK = getTopK();
  if (topK < 1 || topK > mostKeys)
    return emitOpError() << "expects top_k of 1 to " << mostKeys << ", got " << topK;
  if (ShapedType::isDynamic(heads))
    return emitOpError() << "expects a static number of heads";
  if (failed(checkShape(*this, "query", getQuery(), {tokens, heads, cache.getKeyDim()})) ||
      failed(checkShape(*this, "weights", getWeights(), {tokens, heads})) ||
      failed(checkShape(*this, "result", getResult(), {tokens, topK})))
    return failure();
  return checkStep(*this, tokens, getPositions(), getTokenSequences());
}

LogicalResult SelectKeysOp::reifyResultShapes(OpBuilder &builder,
                                              ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getQuery(), shapes);
}

bool SelectKeysOp::isTokenOperand(unsigned index) {
  Value operand = (*this)->getOperand(index);
  return operand != getCache() && operand != getBlockTable();
}

OpOperand &AttentionOp::getRotatedOperand() { return getQueryMutable(); }
Value AttentionOp::getRotaryPositions() { return getPositions(); }
RotaryAttr AttentionOp::getAppliedRotary() { return getRotaryAttr(); }
void AttentionOp::setAppliedRotary(RotaryAttr rotary) { setRotaryAttr(rotary); }
