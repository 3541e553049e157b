// moe.experts, moe.grouped_linear, moe.combine.
#include "MoEModels.h"

using namespace mlir;
using namespace mlir::moec::moe;

/// weight[expert] row + bias[expert] for several rows of one expert, without rounding: [rows][N].
static std::vector<std::vector<double>> multiply(const WeightRows &weight, int64_t expert,
                                                 int64_t n, const ReferenceTensor *bias,
                                                 ArrayRef<std::vector<float>> rows) {
  std::vector<std::vector<double>> results(rows.size(), std::vector<double>(n));
  std::vector<float> weightRow(weight.getRowLength());
  for (int64_t i = 0; i < n; ++i) {
    weight.read(expert * n + i, weightRow);
    double addend = bias ? bias->getReal(expert * n + i) : 0.0;
    for (size_t row = 0; row < rows.size(); ++row)
      results[row][i] = dot(rows[row], weightRow) + addend;
  }
  return results;
}

/// The sizes of an expert weight [experts, N, K]; those of a tensor may be dynamic in its type.
static SmallVector<int64_t> getWeightShape(ReferenceFrame &frame, Value weight) {
  if (isa<BlockTensorType>(weight.getType()))
    return frame.get(weight).getBlocks().shape;
  return SmallVector<int64_t>(frame.getTensor(weight).getShape());
}

static std::vector<float> readRow(const ReferenceTensor &tensor, int64_t row) {
  std::vector<float> result(tensor.getDimSize(1));
  tensor.readFloats(row * tensor.getDimSize(1), result);
  return result;
}

//===------------------------------------------------------------------------------------------===//
// experts
//===------------------------------------------------------------------------------------------===//

namespace {
class ExpertsEvaluation {
public:
  ExpertsEvaluation(ExpertsOp op, ReferenceFrame &frame)
      : op(op), frame(frame), input(frame.getTensor(op.getInput())),
        indices(frame.getTensor(op.getIndices())), weights(frame.getTensor(op.getWeights())),
        gateUpBias(frame.getOptionalTensor(op.getGateUpBias())),
        downBias(frame.getOptionalTensor(op.getDownBias())),
        residual(frame.getOptionalTensor(op.getResidual())),
        gateUpShape(getWeightShape(frame, op.getGateUp())),
        downShape(getWeightShape(frame, op.getDown())) {}

  LogicalResult run();

private:
  LogicalResult checkShapes();

  ExpertsOp op;
  ReferenceFrame &frame;
  const ReferenceTensor &input, &indices, &weights;
  const ReferenceTensor *gateUpBias, *downBias, *residual;
  SmallVector<int64_t> gateUpShape, downShape;
};
} // namespace

LogicalResult ExpertsEvaluation::checkShapes() {
  int64_t tokens = input.getDimSize(0), k = indices.getDimSize(1), experts = gateUpShape[0];
  int64_t hidden = downShape[1];
  if (gateUpShape[1] % 2 != 0 || downShape[0] != experts || downShape[2] != gateUpShape[1] / 2)
    return op.emitError() << "while interpreting: gate_up of " << describeShape(gateUpShape)
                          << " does not go with down of " << describeShape(downShape);
  if (failed(frame.checkShape(op, "input", input, {tokens, gateUpShape[2]})) ||
      failed(frame.checkShape(op, "indices", indices, {tokens, k})) ||
      failed(frame.checkShape(op, "weights", weights, {tokens, k})) ||
      (gateUpBias &&
       failed(frame.checkShape(op, "gate_up_bias", *gateUpBias, {experts, gateUpShape[1]}))) ||
      (downBias && failed(frame.checkShape(op, "down_bias", *downBias, {experts, hidden}))) ||
      (residual && failed(frame.checkShape(op, "residual", *residual, {tokens, hidden}))))
    return failure();
  for (int64_t pair = 0; pair < indices.getSize(); ++pair)
    if (indices.getInteger(pair) >= experts)
      return op.emitError() << "while interpreting: choice " << pair % k << " of token " << pair / k
                            << " is expert " << indices.getInteger(pair) << ", but there are "
                            << experts;
  return success();
}

LogicalResult ExpertsEvaluation::run() {
  if (failed(checkShapes()))
    return failure();
  int64_t tokens = input.getDimSize(0), k = indices.getDimSize(1), hidden = downShape[1];
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {tokens, hidden});
  if (failed(result))
    return failure();
  WeightRows gateUp(frame, op.getGateUp()), down(frame, op.getDown());

  // Expert by expert, so that each weight is decoded once; the sum over the choices comes after, in
  // their order.
  std::vector<std::vector<float>> outputs(indices.getSize());
  for (int64_t expert = 0; expert < gateUpShape[0]; ++expert) {
    SmallVector<int64_t> pairs;
    std::vector<std::vector<float>> rows;
    for (int64_t pair = 0; pair < indices.getSize(); ++pair)
      if (indices.getInteger(pair) == expert) {
        pairs.push_back(pair);
        rows.push_back(readRow(input, pair / k));
      }
    if (pairs.empty())
      continue;
    std::vector<std::vector<float>> inner;
    for (const std::vector<double> &row :
         multiply(gateUp, expert, gateUpShape[1], gateUpBias, rows))
      inner.push_back(roundTo(input.getElementType(), activateRow(op.getActivation(), row)));
    std::vector<std::vector<double>> products = multiply(down, expert, hidden, downBias, inner);
    for (auto [pair, product] : llvm::zip_equal(pairs, products))
      outputs[pair] = roundTo(Float32Type::get(op.getContext()), product);
  }
  for (int64_t t = 0; t < tokens; ++t) {
    std::vector<double> sum(hidden, 0.0);
    for (int64_t pair = t * k; pair < (t + 1) * k; ++pair)
      for (size_t i = 0; i < outputs[pair].size(); ++i)
        sum[i] += weights.getReal(pair) * outputs[pair][i];
    for (int64_t i = 0; residual && i < hidden; ++i)
      sum[i] += residual->getReal(t * hidden + i);
    result->writeReals(t * hidden, sum);
  }
  return frame.set(op.getResult(), std::move(*result));
}

//===------------------------------------------------------------------------------------------===//
// grouped_linear
//===------------------------------------------------------------------------------------------===//

/// Checks that offsets and pairs name rows that are there.
static LogicalResult checkGroups(GroupedLinearOp op, const ReferenceTensor &offsets,
                                 const ReferenceTensor &pairs) {
  int64_t previous = 0;
  for (int64_t e = 0; e < offsets.getSize(); ++e) {
    int64_t offset = offsets.getInteger(e);
    if (offset < previous || offset > pairs.getSize() || (e == 0 && offset != 0))
      return op.emitError() << "while interpreting: offsets must ascend from 0 to at most "
                            << pairs.getSize() << ", entry " << e << " is " << offset;
    previous = offset;
  }
  std::vector<bool> seen(pairs.getSize(), false);
  for (int64_t i = 0; i < previous; ++i) {
    int64_t pair = pairs.getInteger(i);
    if (pair < 0 || pair >= pairs.getSize() || seen[pair])
      return op.emitError() << "while interpreting: pairs must be different numbers below "
                            << pairs.getSize() << ", entry " << i << " is " << pair;
    seen[pair] = true;
  }
  return success();
}

static LogicalResult evaluateGroupedLinear(GroupedLinearOp op, ReferenceFrame &frame) {
  const ReferenceTensor &input = frame.getTensor(op.getInput());
  const ReferenceTensor &offsets = frame.getTensor(op.getOffsets());
  const ReferenceTensor &pairs = frame.getTensor(op.getPairs());
  const ReferenceTensor *bias = frame.getOptionalTensor(op.getBias());
  SmallVector<int64_t> shape = getWeightShape(frame, op.getWeight());
  int64_t experts = shape[0], n = shape[1], topK = static_cast<int64_t>(op.getTopK());
  int64_t inputRows = input.getDimSize(0);
  if (failed(frame.checkShape(op, "input", input, {inputRows, shape[2]})) ||
      failed(frame.checkShape(op, "offsets", offsets, {experts + 1})) ||
      failed(
          frame.checkShape(op, "pairs", pairs, {op.getGather() ? inputRows * topK : inputRows})) ||
      (bias && failed(frame.checkShape(op, "bias", *bias, {experts, n}))) ||
      failed(checkGroups(op, offsets, pairs)))
    return failure();
  // Rows that no pair names keep their poison.
  ActivationAttr activation = op.getActivationAttr();
  int64_t width = activation ? n / 2 : n;
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {pairs.getSize(), width});
  if (failed(result))
    return failure();

  WeightRows weight(frame, op.getWeight());
  for (int64_t expert = 0; expert < experts; ++expert) {
    int64_t first = offsets.getInteger(expert), last = offsets.getInteger(expert + 1);
    std::vector<std::vector<float>> rows;
    for (int64_t i = first; i < last; ++i)
      rows.push_back(readRow(input, op.getGather() ? pairs.getInteger(i) / topK : i));
    if (rows.empty())
      continue;
    std::vector<std::vector<double>> products = multiply(weight, expert, n, bias, rows);
    for (int64_t i = first; i < last; ++i) {
      const std::vector<double> &product = products[i - first];
      int64_t target = op.getScatter() ? pairs.getInteger(i) : i;
      result->writeReals(target * width, activation ? activateRow(activation, product) : product);
    }
  }
  return frame.set(op.getResult(), std::move(*result));
}

//===------------------------------------------------------------------------------------------===//
// combine
//===------------------------------------------------------------------------------------------===//

static LogicalResult evaluateCombine(CombineOp op, ReferenceFrame &frame) {
  const ReferenceTensor &input = frame.getTensor(op.getInput());
  const ReferenceTensor &weights = frame.getTensor(op.getWeights());
  const ReferenceTensor &indices = frame.getTensor(op.getIndices());
  const ReferenceTensor *residual = frame.getOptionalTensor(op.getResidual());
  int64_t tokens = weights.getDimSize(0), k = weights.getDimSize(1), hidden = input.getDimSize(1);
  if (failed(frame.checkShape(op, "input", input, {tokens * k, hidden})) ||
      failed(frame.checkShape(op, "indices", indices, {tokens, k})) ||
      (residual && failed(frame.checkShape(op, "residual", *residual, {tokens, hidden}))))
    return failure();
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {tokens, hidden});
  if (failed(result))
    return failure();
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t i = 0; i < hidden; ++i) {
      double sum = residual ? residual->getReal(t * hidden + i) : 0.0;
      for (int64_t pair = t * k; pair < (t + 1) * k; ++pair)
        if (indices.getInteger(pair) >= 0)
          sum += weights.getReal(pair) * input.getReal(pair * hidden + i);
      result->set(t * hidden + i, Scalar::fromReal(sum));
    }
  return frame.set(op.getResult(), std::move(*result));
}

static LogicalResult evaluateGate(GateOp op, ReferenceFrame &frame) {
  const ReferenceTensor &gate = frame.getTensor(op.getGate()), &up = frame.getTensor(op.getUp());
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), gate.getShape());
  if (failed(result) || failed(frame.checkShape(op, "up", up, gate.getShape())))
    return failure();
  for (int64_t i = 0; i < gate.getSize(); ++i)
    result->set(i, Scalar::fromReal(activate(op.getActivation(), gate.getReal(i), up.getReal(i))));
  return frame.set(op.getResult(), std::move(*result));
}

void mlir::moec::moe::attachExpertModels(MLIRContext *context) {
  attachEvaluation<ExpertsOp>(context, [](ExpertsOp op, ReferenceFrame &frame) {
    return ExpertsEvaluation(op, frame).run();
  });
  attachEvaluation<GateOp>(
      context, [](GateOp op, ReferenceFrame &frame) { return evaluateGate(op, frame); });
  attachEvaluation<GroupedLinearOp>(context, [](GroupedLinearOp op, ReferenceFrame &frame) {
    return evaluateGroupedLinear(op, frame);
  });
  attachEvaluation<CombineOp>(
      context, [](CombineOp op, ReferenceFrame &frame) { return evaluateCombine(op, frame); });
}
