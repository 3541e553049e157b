// moe.kv_append, moe.attention.
#include "MoEModels.h"
#include "PagedPositions.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::moec::moe;

/// One token's heads, rotated (and rounded to their own type, as moe.rope would) when there is a
/// rotation.
static std::vector<float> readHeads(const ReferenceTensor &tensor, int64_t token, int64_t position,
                                    RotaryAttr rotary) {
  int64_t dim = tensor.getDimSize(2), width = tensor.getDimSize(1) * dim;
  std::vector<float> heads(width);
  tensor.readFloats(token * width, heads);
  if (!rotary)
    return heads;
  std::vector<double> rotated(heads.begin(), heads.end());
  rotateHeads(rotated, dim, position, rotary);
  return roundTo(tensor.getElementType(), rotated);
}

static LogicalResult evaluateAppend(KVAppendOp op, ReferenceFrame &frame) {
  const ReferenceTensor &key = frame.getTensor(op.getKey());
  const ReferenceTensor *value = frame.getOptionalTensor(op.getValue());
  ReferenceCache &cache = frame.get(op.getCache()).getCache();
  CacheType type = cache.getType();
  int64_t tokens = key.getDimSize(0), heads = type.getKvHeads();
  FailureOr<PagedPositions> paged = PagedPositions::create(
      op, frame, tokens, cache, op.getPositions(), op.getTokenSequences(), op.getBlockTable(),
      PagedPositions::Allowed::coveredOrNone);
  if (failed(paged) ||
      failed(frame.checkShape(op, "key", key, {tokens, heads, type.getKeyDim()})) ||
      (value &&
       failed(frame.checkShape(op, "value", *value, {tokens, heads, type.getValueDim()}))))
    return failure();

  ReferenceTensor &pool = cache.getPool();
  for (int64_t t = 0; t < tokens; ++t) {
    int64_t position = paged->getPosition(t);
    if (position < 0)
      continue;
    FailureOr<PagedPositions::Slot> slot = paged->findSlot(paged->getSequence(t), position);
    if (failed(slot))
      return failure();
    std::vector<float> keys = readHeads(key, t, position, op.getRotaryAttr());
    std::vector<float> values =
        value ? readHeads(*value, t, position, {}) : std::vector<float>();
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t i = 0; i < type.getKeyDim(); ++i)
        pool.set(cache.getKeyIndex(slot->block, slot->offset, head, i),
                 Scalar::fromReal(keys[head * type.getKeyDim() + i]));
      for (int64_t i = 0; value && i < type.getValueDim(); ++i)
        pool.set(cache.getValueIndex(slot->block, slot->offset, head, i),
                 Scalar::fromReal(values[head * type.getValueDim() + i]));
    }
  }
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Attention
//===------------------------------------------------------------------------------------------===//

namespace {

/// Keys and values of one sequence, copied out of the cache as positions are asked for.
class SequenceContent {
public:
  SequenceContent(const ReferenceCache &cache, const PagedPositions &paged, int64_t sequence)
      : cache(cache), paged(paged), sequence(sequence) {}

  /// Must be called before getKey and getValue of a position.
  LogicalResult fetch(int64_t position);
  ArrayRef<float> getKey(int64_t position, int64_t head) const {
    int64_t dim = cache.getType().getKeyDim();
    return ArrayRef(rows[position].keys).slice(head * dim, dim);
  }
  ArrayRef<float> getValue(int64_t position, int64_t head) const {
    int64_t dim = cache.getType().getValueDim();
    return ArrayRef(rows[position].values).slice(head * dim, dim);
  }

private:
  struct Row {
    bool isKnown = false;
    std::vector<float> keys, values;
  };
  const ReferenceCache &cache;
  const PagedPositions &paged;
  int64_t sequence;
  std::vector<Row> rows;
};

class AttentionEvaluation {
public:
  AttentionEvaluation(AttentionOp op, ReferenceFrame &frame)
      : op(op), frame(frame), query(frame.getTensor(op.getQuery())),
        sinks(frame.getOptionalTensor(op.getSinks())),
        indices(frame.getOptionalTensor(op.getIndices())),
        cache(frame.get(op.getCache()).getCache()) {}

  LogicalResult run();

private:
  FailureOr<std::vector<int64_t>> findVisible(int64_t token, int64_t position);
  std::vector<double> attend(ArrayRef<float> queryHead, ArrayRef<int64_t> visible, int64_t head,
                             const SequenceContent &content);

  AttentionOp op;
  ReferenceFrame &frame;
  const ReferenceTensor &query, *sinks, *indices;
  ReferenceCache &cache;
};

} // namespace

LogicalResult SequenceContent::fetch(int64_t position) {
  if (static_cast<size_t>(position) >= rows.size())
    rows.resize(position + 1);
  Row &row = rows[position];
  if (row.isKnown)
    return success();
  FailureOr<PagedPositions::Slot> slot = paged.findSlot(sequence, position);
  if (failed(slot))
    return failure();
  CacheType type = cache.getType();
  for (int64_t head = 0; head < type.getKvHeads(); ++head) {
    for (int64_t i = 0; i < type.getKeyDim(); ++i)
      row.keys.push_back(static_cast<float>(
          cache.getPool().getReal(cache.getKeyIndex(slot->block, slot->offset, head, i))));
    for (int64_t i = 0; i < type.getValueDim(); ++i)
      row.values.push_back(static_cast<float>(
          cache.getPool().getReal(cache.getValueIndex(slot->block, slot->offset, head, i))));
  }
  row.isKnown = true;
  return success();
}

/// The positions that a token sees, ascending without an index list and in the list's order with
/// one.
FailureOr<std::vector<int64_t>> AttentionEvaluation::findVisible(int64_t token, int64_t position) {
  int64_t first = op.getWindow() ? std::max<int64_t>(0, position - op.getWindow() + 1) : 0;
  std::vector<int64_t> visible;
  if (!indices) {
    for (int64_t j = first; j <= position; ++j)
      visible.push_back(j);
    return visible;
  }
  int64_t width = indices->getDimSize(1);
  std::vector<bool> seen(position + 1, false);
  for (int64_t i = 0; i < width; ++i) {
    int64_t j = indices->getInteger(token * width + i);
    if (j < -1)
      return op.emitError() << "while interpreting: index " << j << " of token " << token
                            << " is neither a position nor -1";
    if (j == -1 || j > position)
      continue;
    if (seen[j])
      return op.emitError() << "while interpreting: position " << j << " is twice among the "
                            << "indices of token " << token;
    seen[j] = true;
    if (j >= first)
      visible.push_back(j);
  }
  return visible;
}

/// One head of one token.
std::vector<double> AttentionEvaluation::attend(ArrayRef<float> queryHead,
                                                ArrayRef<int64_t> visible, int64_t head,
                                                const SequenceContent &content) {
  CacheType type = cache.getType();
  std::vector<double> result(type.getValueDim(), 0.0);
  if (visible.empty())
    return result;
  int64_t kvHead = head / (query.getDimSize(1) / type.getKvHeads());
  double scale = op.getScale().convertToDouble(), softcap = op.getSoftcap().convertToDouble();
  std::vector<double> scores;
  for (int64_t j : visible) {
    double score = dot(queryHead, content.getKey(j, kvHead)) * scale;
    scores.push_back(softcap != 0 ? softcap * std::tanh(score / softcap) : score);
  }
  double largest = *std::max_element(scores.begin(), scores.end()), sum = 0;
  if (sinks)
    largest = std::max(largest, sinks->getReal(head));
  for (auto [j, score] : llvm::zip_equal(visible, scores)) {
    double probability = std::exp(score - largest);
    sum += probability;
    ArrayRef<float> value = content.getValue(j, kvHead);
    for (int64_t i = 0; i < type.getValueDim(); ++i)
      result[i] += probability * value[i];
  }
  if (sinks)
    sum += std::exp(sinks->getReal(head) - largest);
  for (double &x : result)
    x /= sum;
  return result;
}

LogicalResult AttentionEvaluation::run() {
  CacheType type = cache.getType();
  int64_t tokens = query.getDimSize(0), heads = query.getDimSize(1), dim = type.getKeyDim();
  FailureOr<PagedPositions> paged = PagedPositions::create(
      op, frame, tokens, cache, op.getPositions(), op.getTokenSequences(), op.getBlockTable());
  if (failed(paged) || failed(frame.checkShape(op, "query", query, {tokens, heads, dim})) ||
      (sinks && failed(frame.checkShape(op, "sinks", *sinks, {heads}))) ||
      (indices &&
       failed(frame.checkShape(op, "indices", *indices, {tokens, indices->getDimSize(1)}))))
    return failure();
  FailureOr<ReferenceTensor> result =
      frame.allocate(op->getOpResult(0), {tokens, heads, type.getValueDim()});
  if (failed(result))
    return failure();

  std::map<int64_t, SequenceContent> contents;
  for (int64_t t = 0; t < tokens; ++t) {
    int64_t position = paged->getPosition(t), sequence = paged->getSequence(t);
    SequenceContent &content =
        contents.try_emplace(sequence, cache, *paged, sequence).first->second;
    FailureOr<std::vector<int64_t>> visible = findVisible(t, position);
    if (failed(visible))
      return failure();
    for (int64_t j : *visible)
      if (failed(content.fetch(j)))
        return failure();
    std::vector<float> queries = readHeads(query, t, position, op.getRotaryAttr());
    for (int64_t head = 0; head < heads; ++head)
      result->writeReals((t * heads + head) * type.getValueDim(),
                         attend(ArrayRef(queries).slice(head * dim, dim), *visible, head, content));
  }
  return frame.set(op.getResult(), std::move(*result));
}

void mlir::moec::moe::attachAttentionModels(MLIRContext *context) {
  attachEvaluation<KVAppendOp>(
      context, [](KVAppendOp op, ReferenceFrame &frame) { return evaluateAppend(op, frame); });
  attachEvaluation<AttentionOp>(context, [](AttentionOp op, ReferenceFrame &frame) {
    return AttentionEvaluation(op, frame).run();
  });
}
