// moe.causal_conv, moe.decay_gate, moe.delta_rule.
#include "MoEModels.h"
#include "StepSequences.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec::moe;

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

//===------------------------------------------------------------------------------------------===//
// Convolution
//===------------------------------------------------------------------------------------------===//

static LogicalResult evaluateConv(CausalConvOp op, ReferenceFrame &frame) {
  const ReferenceTensor &input = frame.getTensor(op.getInput());
  const ReferenceTensor &weight = frame.getTensor(op.getWeight());
  ReferenceState &state = frame.get(op.getState()).getState();
  int64_t tokens = input.getDimSize(0), channels = weight.getDimSize(0),
          size = weight.getDimSize(1);
  FailureOr<std::vector<StepSequence>> sequences = readStepSequences(
      op, frame, tokens, state, op.getPositions(), op.getSequenceOffsets(), op.getStateSlots());
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {tokens, channels});
  if (failed(sequences) || failed(result) ||
      failed(frame.checkShape(op, "input", input, {tokens, channels})))
    return failure();

  for (const StepSequence &sequence : *sequences) {
    int64_t slot = sequence.slot * (size - 1) * channels;
    // The slot's rows and then the step's, one after the other.
    std::vector<double> rows((size - 1) * channels, 0.0);
    if (!sequence.begins)
      for (int64_t i = 0; i < (size - 1) * channels; ++i)
        rows[i] = state.slots.getReal(slot + i);
    for (int64_t i = sequence.firstToken * channels; i < sequence.endToken * channels; ++i)
      rows.push_back(input.getReal(i));
    int64_t count = sequence.endToken - sequence.firstToken;
    for (int64_t t = 0; t < count; ++t)
      for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < size; ++j)
          sum += weight.getReal(c * size + j) * rows[(t + j) * channels + c];
        result->set((sequence.firstToken + t) * channels + c,
                    Scalar::fromReal(op.getSilu() ? sum * sigmoid(sum) : sum));
      }
    state.slots.writeReals(slot, ArrayRef(rows).drop_front(count * channels));
  }
  return frame.set(op.getResult(), std::move(*result));
}

//===------------------------------------------------------------------------------------------===//
// Decay
//===------------------------------------------------------------------------------------------===//

static LogicalResult evaluateDecay(DecayGateOp op, ReferenceFrame &frame) {
  const ReferenceTensor &input = frame.getTensor(op.getInput());
  const ReferenceTensor &bias = frame.getTensor(op.getBias());
  const ReferenceTensor &logarithms = frame.getTensor(op.getALog());
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), input.getShape());
  if (failed(result) || failed(frame.checkShape(op, "bias", bias, input.getShape().drop_front())))
    return failure();
  int64_t width = bias.getSize(), channels = width / std::max<int64_t>(input.getDimSize(1), 1);
  for (int64_t i = 0; i < input.getSize(); ++i) {
    double factor = std::exp(logarithms.getReal(i % width / channels));
    double x = input.getReal(i) + bias.getReal(i % width);
    // log(1 + exp(x)) without an overflow.
    double softplus = std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    result->set(i, Scalar::fromReal(op.getLowerBound() ? op.getLowerBound()->convertToDouble() *
                                                             sigmoid(factor * x)
                                                       : -factor * softplus));
  }
  return frame.set(op.getResult(), std::move(*result));
}

//===------------------------------------------------------------------------------------------===//
// Delta rule
//===------------------------------------------------------------------------------------------===//

namespace {

class DeltaRuleEvaluation {
public:
  DeltaRuleEvaluation(DeltaRuleOp op, ReferenceFrame &frame)
      : op(op), frame(frame), query(frame.getTensor(op.getQuery())),
        key(frame.getTensor(op.getKey())), value(frame.getTensor(op.getValue())),
        decay(frame.getTensor(op.getDecay())), beta(frame.getTensor(op.getBeta())),
        state(frame.get(op.getState()).getState()), keyHeads(query.getDimSize(1)),
        keyDim(query.getDimSize(2)), heads(value.getDimSize(1)), valueDim(value.getDimSize(2)) {}

  LogicalResult run();

private:
  std::vector<double> readRow(const ReferenceTensor &tensor, int64_t token, int64_t head);
  double getDecay(int64_t token, int64_t head, int64_t channel);
  std::vector<double> step(std::vector<double> &matrix, int64_t token, int64_t head);

  DeltaRuleOp op;
  ReferenceFrame &frame;
  const ReferenceTensor &query, &key, &value, &decay, &beta;
  ReferenceState &state;
  int64_t keyHeads, keyDim, heads, valueDim;
};

} // namespace

/// The query or key of a head, normalised.
std::vector<double> DeltaRuleEvaluation::readRow(const ReferenceTensor &tensor, int64_t token,
                                                 int64_t head) {
  int64_t keyHead = head / (heads / keyHeads);
  std::vector<double> row(keyDim);
  double sum = 0;
  for (int64_t i = 0; i < keyDim; ++i) {
    row[i] = tensor.getReal((token * keyHeads + keyHead) * keyDim + i);
    sum += row[i] * row[i];
  }
  if (std::optional<APFloat> epsilon = op.getNormEpsilon())
    for (double &x : row)
      x /= std::sqrt(sum + epsilon->convertToDouble());
  return row;
}

double DeltaRuleEvaluation::getDecay(int64_t token, int64_t head, int64_t channel) {
  int64_t row = token * heads + head;
  return std::exp(decay.getReal(decay.getRank() == 3 ? row * keyDim + channel : row));
}

/// Updates the head's matrix with a token and gives the token's result.
std::vector<double> DeltaRuleEvaluation::step(std::vector<double> &matrix, int64_t token,
                                              int64_t head) {
  std::vector<double> queries = readRow(query, token, head), keys = readRow(key, token, head);
  std::vector<double> errors(valueDim), result(valueDim, 0.0);
  int64_t row = token * heads + head;
  for (int64_t v = 0; v < valueDim; ++v)
    errors[v] = value.getReal(row * valueDim + v);
  for (int64_t k = 0; k < keyDim; ++k) {
    double factor = getDecay(token, head, k);
    for (int64_t v = 0; v < valueDim; ++v) {
      matrix[k * valueDim + v] *= factor;
      errors[v] -= keys[k] * matrix[k * valueDim + v];
    }
  }
  double strength = beta.getReal(row), scale = op.getScale().convertToDouble();
  for (int64_t k = 0; k < keyDim; ++k)
    for (int64_t v = 0; v < valueDim; ++v) {
      matrix[k * valueDim + v] += strength * keys[k] * errors[v];
      result[v] += queries[k] * scale * matrix[k * valueDim + v];
    }
  return result;
}

LogicalResult DeltaRuleEvaluation::run() {
  int64_t tokens = query.getDimSize(0);
  FailureOr<std::vector<StepSequence>> sequences = readStepSequences(
      op, frame, tokens, state, op.getPositions(), op.getSequenceOffsets(), op.getStateSlots());
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {tokens, heads, valueDim});
  if (failed(sequences) || failed(result) ||
      failed(frame.checkShape(op, "key", key, query.getShape())) ||
      failed(frame.checkShape(op, "value", value, {tokens, heads, valueDim})) ||
      failed(frame.checkShape(op, "beta", beta, {tokens, heads})))
    return failure();
  SmallVector<int64_t> decayShape = {tokens, heads};
  if (decay.getRank() == 3)
    decayShape.push_back(keyDim);
  if (failed(frame.checkShape(op, "decay", decay, decayShape)))
    return failure();

  int64_t size = keyDim * valueDim;
  for (const StepSequence &sequence : *sequences)
    for (int64_t head = 0; head < heads; ++head) {
      int64_t place = (sequence.slot * heads + head) * size;
      std::vector<double> matrix(size, 0.0);
      if (!sequence.begins)
        for (int64_t i = 0; i < size; ++i)
          matrix[i] = state.slots.getReal(place + i);
      for (int64_t t = sequence.firstToken; t < sequence.endToken; ++t)
        result->writeReals((t * heads + head) * valueDim, step(matrix, t, head));
      state.slots.writeReals(place, matrix);
    }
  return frame.set(op.getResult(), std::move(*result));
}

void mlir::moec::moe::attachRecurrentModels(MLIRContext *context) {
  attachEvaluation<CausalConvOp>(
      context, [](CausalConvOp op, ReferenceFrame &frame) { return evaluateConv(op, frame); });
  attachEvaluation<DecayGateOp>(
      context, [](DecayGateOp op, ReferenceFrame &frame) { return evaluateDecay(op, frame); });
  attachEvaluation<DeltaRuleOp>(context, [](DeltaRuleOp op, ReferenceFrame &frame) {
    return DeltaRuleEvaluation(op, frame).run();
  });
}
