// moe.select_keys.
#include "MoEModels.h"
#include "PagedPositions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::moec::moe;

namespace {

class SelectKeysEvaluation {
public:
  SelectKeysEvaluation(SelectKeysOp op, ReferenceFrame &frame)
      : op(op), frame(frame), query(frame.getTensor(op.getQuery())),
        weights(frame.getTensor(op.getWeights())), cache(frame.get(op.getCache()).getCache()) {}

  LogicalResult run();

private:
  float getScore(int64_t token, PagedPositions::Slot slot);

  SelectKeysOp op;
  ReferenceFrame &frame;
  const ReferenceTensor &query, &weights;
  ReferenceCache &cache;
};

} // namespace

float SelectKeysEvaluation::getScore(int64_t token, PagedPositions::Slot slot) {
  int64_t heads = query.getDimSize(1), dim = query.getDimSize(2);
  std::vector<float> key(dim), head(dim);
  for (int64_t i = 0; i < dim; ++i)
    key[i] = static_cast<float>(
        cache.getPool().getReal(cache.getKeyIndex(slot.block, slot.offset, 0, i)));
  double sum = 0;
  for (int64_t h = 0; h < heads; ++h) {
    query.readFloats((token * heads + h) * dim, head);
    double product = dot(head, key);
    sum += weights.getReal(token * heads + h) * (product < 0 ? 0 : product);
  }
  float score = static_cast<float>(sum * op.getScale().convertToDouble());
  return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
}

LogicalResult SelectKeysEvaluation::run() {
  int64_t tokens = query.getDimSize(0), heads = query.getDimSize(1), topK = op.getTopK();
  FailureOr<PagedPositions> paged = PagedPositions::create(
      op, frame, tokens, cache, op.getPositions(), op.getTokenSequences(), op.getBlockTable());
  if (failed(paged) ||
      failed(frame.checkShape(op, "query", query, {tokens, heads, cache.getType().getKeyDim()})) ||
      failed(frame.checkShape(op, "weights", weights, {tokens, heads})))
    return failure();
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {tokens, topK});
  if (failed(result))
    return failure();
  for (int64_t t = 0; t < tokens; ++t) {
    std::vector<float> scores;
    for (int64_t j = 0; j <= paged->getPosition(t); ++j) {
      FailureOr<PagedPositions::Slot> slot = paged->findSlot(paged->getSequence(t), j);
      if (failed(slot))
        return failure();
      scores.push_back(getScore(t, *slot));
    }
    std::vector<int64_t> chosen(scores.size());
    std::iota(chosen.begin(), chosen.end(), 0);
    std::stable_sort(chosen.begin(), chosen.end(),
                     [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
    chosen.resize(std::min<size_t>(chosen.size(), topK));
    std::sort(chosen.begin(), chosen.end());
    chosen.resize(topK, -1);
    for (auto [i, position] : llvm::enumerate(chosen))
      result->set(t * topK + i, Scalar::fromInteger(position));
  }
  return frame.set(op, std::move(*result));
}

void mlir::moec::moe::attachSelectKeysModel(MLIRContext *context) {
  attachEvaluation<SelectKeysOp>(context, [](SelectKeysOp op, ReferenceFrame &frame) {
    return SelectKeysEvaluation(op, frame).run();
  });
}
