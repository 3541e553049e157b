// moe.route, moe.hash_route, moe.group_tokens.
//
// Scores are rounded to f32 before anything is compared, as routers compute them: otherwise experts
// that tie there would not tie here. Softmax scores are compared as logits, which have the same
// order without underflow, unless a bias or groups need the scores themselves.
//
// A NaN counts as -inf, among the logits and for the choice: one bad logit must not spread to the
// weights of the other experts.
#include "MoEModels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::moec::moe;

static constexpr double minusInfinity = -std::numeric_limits<double>::infinity();

static double orLowest(double value) { return std::isnan(value) ? minusInfinity : value; }

static double toSingle(double value) { return static_cast<float>(value); }

static double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

/// Zeros where there is nothing but -inf.
static std::vector<double> softmax(ArrayRef<double> logits) {
  double largest = minusInfinity, sum = 0;
  for (double x : logits)
    largest = std::max(largest, x);
  if (largest == minusInfinity)
    return std::vector<double>(logits.size(), 0.0);
  std::vector<double> result;
  for (double x : logits) {
    result.push_back(std::exp(x - largest));
    sum += result.back();
  }
  for (double &x : result)
    x /= sum;
  return result;
}

static std::vector<double> score(ScoreFunction function, ArrayRef<double> logits) {
  if (function == ScoreFunction::softmax)
    return softmax(logits);
  std::vector<double> result;
  for (double x : logits)
    result.push_back(function == ScoreFunction::sigmoid ? 1 / (1 + std::exp(-x))
                                                        : std::sqrt(softplus(x)));
  return result;
}

/// The `k` largest, largest first; equal ones in the order of their indices.
static SmallVector<int32_t> findLargest(ArrayRef<double> values, int64_t k) {
  SmallVector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return values[a] > values[b]; });
  order.resize(k);
  return order;
}

/// Sets everything outside the best groups to -inf.
static void keepBestGroups(MutableArrayRef<double> selection, int64_t groups, int64_t topGroups) {
  int64_t size = static_cast<int64_t>(selection.size()) / groups;
  std::vector<double> groupScores;
  for (int64_t group = 0; group < groups; ++group) {
    ArrayRef<double> members = selection.slice(group * size, size);
    double sum = 0;
    for (int32_t i : findLargest(members, std::min<int64_t>(2, size)))
      sum += members[i];
    groupScores.push_back(toSingle(sum));
  }
  SmallVector<int32_t> best = findLargest(groupScores, topGroups);
  for (int64_t group = 0; group < groups; ++group)
    if (!llvm::is_contained(best, group))
      for (double &value : selection.slice(group * size, size))
        value = minusInfinity;
}

static LogicalResult evaluateRoute(RouteOp op, ReferenceFrame &frame) {
  const ReferenceTensor &input = frame.getTensor(op.getLogits());
  const ReferenceTensor *bias = frame.getOptionalTensor(op.getSelectionBias());
  int64_t tokens = input.getDimSize(0), experts = input.getDimSize(1);
  auto k = static_cast<int64_t>(op.getTopK()), groups = static_cast<int64_t>(op.getGroups());
  FailureOr<ReferenceTensor> weights = frame.allocate(op->getOpResult(0), {tokens, k});
  FailureOr<ReferenceTensor> indices = frame.allocate(op->getOpResult(1), {tokens, k});
  if (failed(weights) || failed(indices) ||
      (bias && failed(frame.checkShape(op, "selection bias", *bias, {experts}))))
    return failure();

  bool isSoftmax = op.getScore() == ScoreFunction::softmax;
  bool limitsGroups = groups > 1 && static_cast<int64_t>(op.getTopGroups()) < groups;
  for (int64_t t = 0; t < tokens; ++t) {
    std::vector<double> logits;
    for (int64_t e = 0; e < experts; ++e)
      logits.push_back(orLowest(input.getReal(t * experts + e)));
    std::vector<double> scores = score(op.getScore(), logits);

    std::vector<double> selection = isSoftmax && !bias && !limitsGroups ? logits : scores;
    for (int64_t e = 0; e < experts; ++e) {
      double value = toSingle(selection[e]);
      if (bias)
        value = toSingle(value + bias->getReal(e));
      selection[e] = orLowest(value);
    }
    if (limitsGroups)
      keepBestGroups(selection, groups, static_cast<int64_t>(op.getTopGroups()));
    SmallVector<int32_t> chosen = findLargest(selection, k);

    std::vector<double> values;
    for (int32_t e : chosen)
      values.push_back(isSoftmax && op.getRenormalize() ? logits[e] : scores[e]);
    if (op.getRenormalize()) {
      if (isSoftmax) {
        values = softmax(values);
      } else {
        double sum = std::accumulate(values.begin(), values.end(), 0.0) + 1e-20;
        for (double &value : values)
          value /= sum;
      }
    }
    for (int64_t j = 0; j < k; ++j) {
      weights->set(t * k + j, Scalar::fromReal(values[j] * op.getScale().convertToDouble()));
      indices->set(t * k + j, Scalar::fromInteger(chosen[j]));
    }
  }
  if (failed(frame.set(op.getWeights(), std::move(*weights))))
    return failure();
  return frame.set(op.getIndices(), std::move(*indices));
}

static LogicalResult evaluateHashRoute(HashRouteOp op, ReferenceFrame &frame) {
  const ReferenceTensor &logits = frame.getTensor(op.getLogits());
  const ReferenceTensor &ids = frame.getTensor(op.getTokens());
  const ReferenceTensor &table = frame.getTensor(op.getTable());
  int64_t tokens = logits.getDimSize(0), experts = logits.getDimSize(1), k = table.getDimSize(1);
  FailureOr<ReferenceTensor> weights = frame.allocate(op->getOpResult(0), {tokens, k});
  FailureOr<ReferenceTensor> indices = frame.allocate(op->getOpResult(1), {tokens, k});
  if (failed(weights) || failed(indices) || failed(frame.checkShape(op, "tokens", ids, {tokens})))
    return failure();
  for (int64_t t = 0; t < tokens; ++t) {
    int64_t row = std::clamp<int64_t>(ids.getInteger(t), 0, table.getDimSize(0) - 1);
    std::vector<double> chosen;
    for (int64_t j = 0; j < k; ++j) {
      int64_t expert = std::clamp<int64_t>(table.getInteger(row * k + j), 0, experts - 1);
      indices->set(t * k + j, Scalar::fromInteger(expert));
      chosen.push_back(logits.getReal(t * experts + expert));
    }
    chosen = score(op.getScore(), chosen);
    double sum = std::accumulate(chosen.begin(), chosen.end(), 1e-20);
    for (double &value : chosen)
      value = value / (op.getRenormalize() ? sum : 1.0) * op.getScale().convertToDouble();
    weights->writeReals(t * k, chosen);
  }
  if (failed(frame.set(op.getWeights(), std::move(*weights))))
    return failure();
  return frame.set(op.getIndices(), std::move(*indices));
}

static LogicalResult evaluateGroupTokens(GroupTokensOp op, ReferenceFrame &frame) {
  const ReferenceTensor &indices = frame.getTensor(op.getIndices());
  int64_t experts = op.getOffsets().getType().getDimSize(0) - 1;
  FailureOr<ReferenceTensor> offsets = frame.allocate(op->getOpResult(0), {experts + 1});
  FailureOr<ReferenceTensor> pairs = frame.allocate(op->getOpResult(1), {indices.getSize()});
  if (failed(offsets) || failed(pairs))
    return failure();
  std::vector<std::vector<int64_t>> members(experts);
  for (int64_t pair = 0; pair < indices.getSize(); ++pair) {
    int64_t expert = indices.getInteger(pair);
    if (expert >= experts)
      return op.emitError() << "while interpreting: pair " << pair << " names expert " << expert
                            << ", but there are " << experts;
    if (expert >= 0)
      members[expert].push_back(pair);
  }
  // Entries past the last pair keep their poison.
  int64_t next = 0;
  for (int64_t expert = 0; expert < experts; ++expert) {
    offsets->set(expert, Scalar::fromInteger(next));
    for (int64_t pair : members[expert])
      pairs->set(next++, Scalar::fromInteger(pair));
  }
  offsets->set(experts, Scalar::fromInteger(next));
  if (failed(frame.set(op.getOffsets(), std::move(*offsets))))
    return failure();
  return frame.set(op.getPairs(), std::move(*pairs));
}

void mlir::moec::moe::attachRoutingModels(MLIRContext *context) {
  attachEvaluation<RouteOp>(
      context, [](RouteOp op, ReferenceFrame &frame) { return evaluateRoute(op, frame); });
  attachEvaluation<HashRouteOp>(context, [](HashRouteOp op, ReferenceFrame &frame) {
    return evaluateHashRoute(op, frame);
  });
  attachEvaluation<GroupTokensOp>(context, [](GroupTokensOp op, ReferenceFrame &frame) {
    return evaluateGroupTokens(op, frame);
  });
}
