// moe.rms_norm, moe.layer_norm, moe.gated_rms_norm.
#include "MoEModels.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec::moe;

std::vector<double> mlir::moec::moe::normalizeRow(ArrayRef<float> row, ArrayRef<float> weight,
                                                  double epsilon, bool unitOffset) {
  double mean = dot(row, row) / static_cast<double>(row.size());
  double factor = 1 / std::sqrt(mean + epsilon);
  std::vector<double> result(row.size());
  for (size_t i = 0; i < row.size(); ++i) {
    double scale = weight.empty() ? 1.0 : weight[i] + (unitOffset ? 1.0 : 0.0);
    result[i] = row[i] * factor * scale;
  }
  return result;
}

static std::vector<double> layerNormalizeRow(ArrayRef<float> row, ArrayRef<float> weight,
                                             ArrayRef<float> bias, double epsilon) {
  double count = static_cast<double>(row.size()), mean = 0, variance = 0;
  for (double x : row)
    mean += x / count;
  for (double x : row)
    variance += (x - mean) * (x - mean) / count;
  double factor = 1 / std::sqrt(variance + epsilon);
  std::vector<double> result(row.size());
  for (size_t i = 0; i < row.size(); ++i)
    result[i] = (row[i] - mean) * factor * (weight.empty() ? 1.0 : weight[i]) +
                (bias.empty() ? 0.0 : bias[i]);
  return result;
}

/// Applies `normalize` to every row of the last dimension.
template <typename Op, typename Normalize>
static LogicalResult evaluateRows(Op op, ReferenceFrame &frame, Normalize normalize) {
  const ReferenceTensor &input = frame.getTensor(op.getInput());
  int64_t width = input.getShape().back();
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), input.getShape());
  if (failed(result))
    return failure();
  std::vector<float> row(width);
  for (int64_t start = 0; start < input.getSize(); start += width) {
    input.readFloats(start, row);
    result->writeReals(start, normalize(ArrayRef<float>(row)));
  }
  return frame.set(op, std::move(*result));
}

/// The numbers of an optional [width] operand; empty when it is absent.
static FailureOr<std::vector<float>> readScale(Operation *op, ReferenceFrame &frame, StringRef what,
                                               Value value, int64_t width) {
  if (!value)
    return std::vector<float>();
  const ReferenceTensor &tensor = frame.getTensor(value);
  if (failed(frame.checkShape(op, what, tensor, {width})))
    return failure();
  return tensor.getFloats();
}

static LogicalResult evaluateRMSNorm(RMSNormOp op, ReferenceFrame &frame) {
  int64_t width = frame.getTensor(op.getInput()).getShape().back();
  FailureOr<std::vector<float>> weight = readScale(op, frame, "weight", op.getWeight(), width);
  if (failed(weight))
    return failure();
  return evaluateRows(op, frame, [&](ArrayRef<float> row) {
    return normalizeRow(row, *weight, op.getEpsilon().convertToDouble(), op.getUnitOffset());
  });
}

static LogicalResult evaluateLayerNorm(LayerNormOp op, ReferenceFrame &frame) {
  int64_t width = frame.getTensor(op.getInput()).getShape().back();
  FailureOr<std::vector<float>> weight = readScale(op, frame, "weight", op.getWeight(), width);
  FailureOr<std::vector<float>> bias = readScale(op, frame, "bias", op.getBias(), width);
  if (failed(weight) || failed(bias))
    return failure();
  return evaluateRows(op, frame, [&](ArrayRef<float> row) {
    return layerNormalizeRow(row, *weight, *bias, op.getEpsilon().convertToDouble());
  });
}

static LogicalResult evaluateGatedRMSNorm(GatedRMSNormOp op, ReferenceFrame &frame) {
  const ReferenceTensor &input = frame.getTensor(op.getInput());
  const ReferenceTensor &gate = frame.getTensor(op.getGate());
  int64_t width = input.getShape().back();
  FailureOr<std::vector<float>> weight = readScale(op, frame, "weight", op.getWeight(), width);
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), input.getShape());
  if (failed(weight) || failed(result) ||
      failed(frame.checkShape(op, "gate", gate, input.getShape())))
    return failure();
  std::vector<float> row(width);
  for (int64_t start = 0; start < input.getSize(); start += width) {
    input.readFloats(start, row);
    std::vector<double> normalized =
        normalizeRow(row, *weight, op.getEpsilon().convertToDouble(), /*unitOffset=*/false);
    for (int64_t i = 0; i < width; ++i) {
      double g = gate.getReal(start + i), sigmoid = 1 / (1 + std::exp(-g));
      normalized[i] *= op.getFunction() == GateFunction::silu ? g * sigmoid : sigmoid;
    }
    result->writeReals(start, normalized);
  }
  return frame.set(op.getResult(), std::move(*result));
}

void mlir::moec::moe::attachNormModels(MLIRContext *context) {
  attachEvaluation<RMSNormOp>(
      context, [](RMSNormOp op, ReferenceFrame &frame) { return evaluateRMSNorm(op, frame); });
  attachEvaluation<LayerNormOp>(
      context, [](LayerNormOp op, ReferenceFrame &frame) { return evaluateLayerNorm(op, frame); });
  attachEvaluation<GatedRMSNormOp>(context, [](GatedRMSNormOp op, ReferenceFrame &frame) {
    return evaluateGatedRMSNorm(op, frame);
  });
}
