// moe.compress, moe.select_entries, moe.compressed_attention.
#include "MoEModels.h"
#include "PagedPositions.h"
#include "StepSequences.h"

#include <algorithm>

#include <cmath>
#include <limits>

using namespace mlir;
using namespace mlir::moec::moe;

namespace {

/// A softmax that grows slot by slot, and the mean that it weighs: what the state holds of a
/// channel.
struct GrowingMean {
  double maximum = 0, sum = 0, weighted = 0;

  void add(double gate, double key) {
    double larger = sum == 0 ? gate : std::max(maximum, gate);
    double fading = sum == 0 ? 0 : std::exp(maximum - larger), weight = std::exp(gate - larger);
    sum = sum * fading + weight;
    weighted = weighted * fading + weight * key;
    maximum = larger;
  }
};

class CompressEvaluation {
public:
  CompressEvaluation(CompressOp op, ReferenceFrame &frame)
      : op(op), frame(frame), keys(frame.getTensor(op.getKeys())),
        gates(frame.getTensor(op.getGates())), bias(frame.getTensor(op.getBias())),
        positions(frame.getTensor(op.getPositions())), state(frame.get(op.getState()).getState()),
        ratio(op.getRatio()), channels(op.getResult().getType().getDimSize(1)),
        means(op.hasOverlap() ? 2 : 1) {}

  LogicalResult run();

private:
  /// A channel of the sequence's current window and, with overlap, of what the next one begins
  /// with.
  using Channel = SmallVector<GrowingMean, 2>;
  Channel load(const StepSequence &sequence, int64_t channel);
  void store(const StepSequence &sequence, int64_t channel, const Channel &content);
  int64_t getPlace(const StepSequence &sequence, int64_t mean, int64_t channel) {
    return ((sequence.slot * means + mean) * 3) * channels + channel;
  }

  CompressOp op;
  ReferenceFrame &frame;
  const ReferenceTensor &keys, &gates, &bias, &positions;
  ReferenceState &state;
  int64_t ratio, channels, means;
};

} // namespace

CompressEvaluation::Channel CompressEvaluation::load(const StepSequence &sequence,
                                                     int64_t channel) {
  Channel content(means);
  for (int64_t mean = 0; mean < means && !sequence.begins; ++mean) {
    int64_t place = getPlace(sequence, mean, channel);
    content[mean] = {state.slots.getReal(place), state.slots.getReal(place + channels),
                     state.slots.getReal(place + 2 * channels)};
  }
  return content;
}

void CompressEvaluation::store(const StepSequence &sequence, int64_t channel,
                               const Channel &content) {
  for (int64_t mean = 0; mean < means; ++mean) {
    int64_t place = getPlace(sequence, mean, channel);
    for (double value : {content[mean].maximum, content[mean].sum, content[mean].weighted}) {
      state.slots.set(place, Scalar::fromReal(value));
      place += channels;
    }
  }
}

LogicalResult CompressEvaluation::run() {
  int64_t tokens = keys.getDimSize(0), width = keys.getDimSize(1);
  FailureOr<std::vector<StepSequence>> sequences = readStepSequences(
      op, frame, tokens, state, op.getPositions(), op.getSequenceOffsets(), op.getStateSlots());
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {tokens, channels});
  if (failed(sequences) || failed(result) ||
      failed(frame.checkShape(op, "gates", gates, {tokens, width})))
    return failure();

  for (const StepSequence &sequence : *sequences)
    for (int64_t c = 0; c < channels; ++c) {
      Channel content = load(sequence, c);
      for (int64_t t = sequence.firstToken; t < sequence.endToken; ++t) {
        int64_t row = positions.getInteger(t) % ratio;
        // The first half of the channels is the next window's, the last one this window's.
        for (int64_t mean = 0; mean < means; ++mean) {
          int64_t column = (means - 1 - mean) * channels + c;
          content[mean].add(gates.getReal(t * width + column) + bias.getReal(row * width + column),
                            keys.getReal(t * width + column));
        }
        bool isComplete = row + 1 == ratio;
        double entry = isComplete ? content.front().weighted / content.front().sum : 0;
        result->set(t * channels + c, Scalar::fromReal(entry));
        if (!isComplete)
          continue;
        content.erase(content.begin());
        content.emplace_back();
      }
      store(sequence, c, content);
    }
  return frame.set(op.getResult(), std::move(*result));
}

//===------------------------------------------------------------------------------------------===//
// Entries and what attends to them
//===------------------------------------------------------------------------------------------===//

/// The values at a position.
static FailureOr<std::vector<float>> readRow(const ReferenceCache &cache,
                                             const PagedPositions &paged, int64_t sequence,
                                             int64_t position) {
  FailureOr<PagedPositions::Slot> slot = paged.findSlot(sequence, position);
  if (failed(slot))
    return failure();
  std::vector<float> row(cache.getType().getValueDim());
  cache.getPool().readFloats(cache.getValueIndex(slot->block, slot->offset, 0, 0), row);
  return row;
}

template <typename Op>
static int64_t countVisible(Op op, int64_t position) {
  return (position + 1) / static_cast<int64_t>(op.getRatio());
}

/// Entry `entry`: the last of the positions that belong to its window.
template <typename Op>
static FailureOr<std::vector<float>> readEntry(Op op, const ReferenceCache &cache,
                                               const PagedPositions &paged, int64_t sequence,
                                               int64_t entry) {
  auto stride = static_cast<int64_t>(op.getStride());
  return readRow(cache, paged, sequence, entry * stride + stride - 1);
}

static LogicalResult evaluateSelect(SelectEntriesOp op, ReferenceFrame &frame) {
  const ReferenceTensor &query = frame.getTensor(op.getQuery());
  const ReferenceTensor &weights = frame.getTensor(op.getWeights());
  ReferenceCache &entries = frame.get(op.getEntries()).getCache();
  int64_t tokens = query.getDimSize(0), heads = query.getDimSize(1), dim = query.getDimSize(2);
  int64_t wanted = op.getResult().getType().getDimSize(1);
  FailureOr<PagedPositions> paged =
      PagedPositions::create(op, frame, tokens, entries, op.getPositions(), op.getTokenSequences(),
                             op.getBlockTable(), PagedPositions::Allowed::any);
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {tokens, wanted});
  if (failed(paged) || failed(result) ||
      failed(frame.checkShape(op, "weights", weights, {tokens, heads})))
    return failure();

  for (int64_t t = 0; t < tokens; ++t) {
    // Pairs of score and entry.
    std::vector<std::pair<double, int64_t>> scores;
    for (int64_t w = 0; w < countVisible(op, paged->getPosition(t)); ++w) {
      FailureOr<std::vector<float>> entry =
          readEntry(op, entries, *paged, paged->getSequence(t), w);
      if (failed(entry))
        return failure();
      double score = 0;
      std::vector<float> head(dim);
      for (int64_t h = 0; h < heads; ++h) {
        query.readFloats((t * heads + h) * dim, head);
        double product = dot(head, *entry);
        // A NaN stays one.
        score += weights.getReal(t * heads + h) * (product < 0 ? 0 : product);
      }
      // As it is in f32, so that what ties there ties here.
      score = static_cast<float>(score);
      scores.push_back({std::isnan(score) ? -std::numeric_limits<double>::infinity() : score, w});
    }
    llvm::stable_sort(scores, [](auto &a, auto &b) { return a.first > b.first; });
    scores.resize(std::min<size_t>(scores.size(), wanted));
    llvm::sort(scores, [](auto &a, auto &b) { return a.second < b.second; });
    for (int64_t i = 0; i < wanted; ++i)
      result->set(t * wanted + i,
                  Scalar::fromInteger(i < int64_t(scores.size()) ? scores[i].second : -1));
  }
  return frame.set(op.getResult(), std::move(*result));
}

namespace {

class CompressedAttentionEvaluation {
public:
  CompressedAttentionEvaluation(CompressedAttentionOp op, ReferenceFrame &frame)
      : op(op), frame(frame), query(frame.getTensor(op.getQuery())),
        sinks(frame.getOptionalTensor(op.getSinks())),
        indices(frame.getOptionalTensor(op.getIndices())),
        cache(frame.get(op.getCache()).getCache()), entries(frame.get(op.getEntries()).getCache()) {
  }

  LogicalResult run();

private:
  FailureOr<std::vector<int64_t>> findEntries(int64_t token, int64_t position);
  std::vector<double> attend(ArrayRef<float> head, double sink, ArrayRef<std::vector<float>> rows);

  CompressedAttentionOp op;
  ReferenceFrame &frame;
  const ReferenceTensor &query, *sinks, *indices;
  ReferenceCache &cache, &entries;
};

} // namespace

FailureOr<std::vector<int64_t>> CompressedAttentionEvaluation::findEntries(int64_t token,
                                                                           int64_t position) {
  int64_t visible = countVisible(op, position);
  std::vector<int64_t> found;
  if (!indices) {
    for (int64_t w = 0; w < visible; ++w)
      found.push_back(w);
    return found;
  }
  int64_t width = indices->getDimSize(1);
  for (int64_t i = 0; i < width; ++i) {
    int64_t w = indices->getInteger(token * width + i);
    if (w < -1)
      return op.emitError() << "while interpreting: index " << w << " of token " << token
                            << " is neither an entry nor -1";
    if (w == -1 || w >= visible)
      continue;
    if (llvm::is_contained(found, w))
      return op.emitError() << "while interpreting: entry " << w
                            << " is twice among the indices of token " << token;
    found.push_back(w);
  }
  return found;
}

std::vector<double> CompressedAttentionEvaluation::attend(ArrayRef<float> head, double sink,
                                                          ArrayRef<std::vector<float>> rows) {
  std::vector<double> scores, result(head.size(), 0.0);
  double largest = sink;
  for (const std::vector<float> &row : rows) {
    scores.push_back(dot(head, row) * op.getScale().convertToDouble());
    largest = std::max(largest, scores.back());
  }
  double sum = sinks ? std::exp(sink - largest) : 0;
  for (auto [score, row] : llvm::zip_equal(scores, rows)) {
    double probability = std::exp(score - largest);
    sum += probability;
    for (auto [x, element] : llvm::zip_equal(result, row))
      x += probability * element;
  }
  for (double &x : result)
    x /= sum;
  return result;
}

LogicalResult CompressedAttentionEvaluation::run() {
  int64_t tokens = query.getDimSize(0), heads = query.getDimSize(1), dim = query.getDimSize(2);
  auto createPositions = [&](ReferenceCache &content, PagedPositions::Allowed allowed) {
    return PagedPositions::create(op, frame, tokens, content, op.getPositions(),
                                  op.getTokenSequences(), op.getBlockTable(), allowed);
  };
  FailureOr<PagedPositions> inCache = createPositions(cache, PagedPositions::Allowed::covered);
  FailureOr<PagedPositions> inEntries = createPositions(entries, PagedPositions::Allowed::any);
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), query.getShape());
  if (failed(inCache) || failed(inEntries) || failed(result) ||
      (sinks && failed(frame.checkShape(op, "sinks", *sinks, {heads}))) ||
      (indices &&
       failed(frame.checkShape(op, "indices", *indices, {tokens, indices->getDimSize(1)}))))
    return failure();

  for (int64_t t = 0; t < tokens; ++t) {
    int64_t position = inCache->getPosition(t), sequence = inCache->getSequence(t);
    std::vector<std::vector<float>> rows;
    auto add = [&](FailureOr<std::vector<float>> row) {
      if (failed(row))
        return false;
      rows.push_back(std::move(*row));
      return true;
    };
    auto window = static_cast<int64_t>(op.getWindow());
    for (int64_t j = std::max<int64_t>(0, position - window + 1); j <= position; ++j)
      if (!add(readRow(cache, *inCache, sequence, j)))
        return failure();
    FailureOr<std::vector<int64_t>> found = findEntries(t, position);
    if (failed(found))
      return failure();
    for (int64_t w : *found)
      if (!add(readEntry(op, entries, *inEntries, sequence, w)))
        return failure();
    std::vector<float> head(dim);
    for (int64_t h = 0; h < heads; ++h) {
      int64_t place = (t * heads + h) * dim;
      query.readFloats(place, head);
      double sink = sinks ? sinks->getReal(h) : -std::numeric_limits<double>::infinity();
      result->writeReals(place, attend(head, sink, rows));
    }
  }
  return frame.set(op.getResult(), std::move(*result));
}

void mlir::moec::moe::attachCompressionModels(MLIRContext *context) {
  attachEvaluation<CompressOp>(context, [](CompressOp op, ReferenceFrame &frame) {
    return CompressEvaluation(op, frame).run();
  });
  attachEvaluation<SelectEntriesOp>(
      context, [](SelectEntriesOp op, ReferenceFrame &frame) { return evaluateSelect(op, frame); });
  attachEvaluation<CompressedAttentionOp>(context,
                                          [](CompressedAttentionOp op, ReferenceFrame &frame) {
                                            return CompressedAttentionEvaluation(op, frame).run();
                                          });
}
