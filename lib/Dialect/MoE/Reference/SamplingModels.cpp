// moe.sample.
#include "MoEModels.h"

#include "moec/Dialect/MoE/Reference/Sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::moec::moe;

static constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

/// Sums of weights, which fit an f64 only after rounding.
static double toReal(uint64_t sum) { return static_cast<double>(sum); }

int32_t mlir::moec::moe::sampleToken(ArrayRef<float> row, const SampleOptions &options) {
  std::vector<double> logits(row.begin(), row.end());
  for (double &x : logits)
    x = std::isnan(x) ? minusInfinity : x;
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  double largest = logits[order.front()];
  if (!(options.temperature >= 0x1p-126) || options.topK == 1 || std::isinf(largest))
    return order.front();

  auto weigh = [&](int32_t column) -> uint64_t {
    if (logits[column] == minusInfinity)
      return 0;
    double weight = std::exp((logits[column] - largest) / options.temperature);
    return static_cast<uint64_t>(weight * 0x1p40);
  };
  auto sumOf = [&](ArrayRef<int32_t> columns) {
    uint64_t sum = 0;
    for (int32_t column : columns)
      sum += weigh(column);
    return sum;
  };
  if (options.topK > 0 && options.topK < static_cast<int64_t>(order.size()))
    order.resize(options.topK);
  if (options.topP < 1) {
    uint64_t all = sumOf(order), sum = 0;
    double share = std::ceil(std::max(options.topP * toReal(all), 0.0));
    uint64_t wanted = std::clamp<uint64_t>(static_cast<uint64_t>(share), 1, all);
    size_t kept = 0;
    while (sum < wanted)
      sum += weigh(order[kept++]);
    order.resize(kept);
  }
  std::sort(order.begin(), order.end());
  uint64_t sum = sumOf(order), running = 0;
  uint64_t point = std::min(static_cast<uint64_t>(options.random * toReal(sum)), sum - 1);
  for (int32_t column : order) {
    running += weigh(column);
    if (running > point)
      return column;
  }
  llvm_unreachable("the running sum ends above every point");
}

static LogicalResult evaluateSample(SampleOp op, ReferenceFrame &frame) {
  const ReferenceTensor &logits = frame.getTensor(op.getLogits());
  const ReferenceTensor &rows = frame.getTensor(op.getRows());
  const ReferenceTensor &temperature = frame.getTensor(op.getTemperature());
  const ReferenceTensor &topK = frame.getTensor(op.getTopK());
  const ReferenceTensor &topP = frame.getTensor(op.getTopP());
  const ReferenceTensor &random = frame.getTensor(op.getRandom());
  int64_t tokens = rows.getSize(), vocabulary = logits.getDimSize(1);
  for (auto &[what, tensor] : {std::pair("temperature", &temperature),
                               {"top_k", &topK},
                               {"top_p", &topP},
                               {"random", &random}})
    if (failed(frame.checkShape(op, what, *tensor, {tokens})))
      return failure();
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {tokens});
  if (failed(result))
    return failure();
  for (int64_t i = 0; i < tokens; ++i) {
    int64_t row = rows.getInteger(i);
    if (row < 0 || row >= logits.getDimSize(0))
      return op.emitError() << "while interpreting: token " << i << " is chosen from row " << row
                            << ", but there are " << logits.getDimSize(0);
    if (!(random.getReal(i) >= 0 && random.getReal(i) < 1))
      return op.emitError() << "while interpreting: token " << i << " has the random number "
                            << random.getReal(i) << ", which is not in [0, 1)";
    std::vector<float> values(vocabulary);
    logits.readFloats(row * vocabulary, values);
    int32_t token = sampleToken(
        values, {temperature.getReal(i), topK.getInteger(i), topP.getReal(i), random.getReal(i)});
    result->set(i, Scalar::fromInteger(token));
  }
  return frame.set(op.getTokens(), std::move(*result));
}

void mlir::moec::moe::attachSamplingModels(MLIRContext *context) {
  attachEvaluation<SampleOp>(
      context, [](SampleOp op, ReferenceFrame &frame) { return evaluateSample(op, frame); });
}
