// moe.hyper_weights, moe.hyper_collapse, moe.hyper_expand.
#include "MoEModels.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec::moe;

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Divides the elements first, first + step, ... of a matrix by their sum plus epsilon.
static void divideBySum(MutableArrayRef<double> matrix, int64_t first, int64_t step, int64_t count,
                        double epsilon) {
  double sum = epsilon;
  for (int64_t i = 0; i < count; ++i)
    sum += matrix[first + i * step];
  for (int64_t i = 0; i < count; ++i)
    matrix[first + i * step] /= sum;
}

/// A softmax over each row, and then rows and columns in turn.
static void makeDoublyStochastic(MutableArrayRef<double> matrix, int64_t n, int64_t iterations,
                                 double epsilon) {
  for (int64_t row = 0; row < n; ++row) {
    MutableArrayRef<double> logits = matrix.slice(row * n, n);
    double largest = *llvm::max_element(logits), sum = 0;
    for (double &x : logits)
      sum += x = std::exp(x - largest);
    for (double &x : logits)
      x = x / sum + epsilon;
  }
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    if (iteration > 0)
      for (int64_t row = 0; row < n; ++row)
        divideBySum(matrix, row * n, 1, n, epsilon);
    for (int64_t column = 0; column < n; ++column)
      divideBySum(matrix, column, n, n, epsilon);
  }
}

static LogicalResult evaluateWeights(HyperWeightsOp op, ReferenceFrame &frame) {
  const ReferenceTensor &products = frame.getTensor(op.getProducts());
  const ReferenceTensor &streams = frame.getTensor(op.getStreams());
  const ReferenceTensor &scale = frame.getTensor(op.getScale());
  const ReferenceTensor &base = frame.getTensor(op.getBase());
  int64_t tokens = products.getDimSize(0), columns = products.getDimSize(1);
  int64_t n = streams.getDimSize(1), features = streams.getDimSize(2);
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {tokens, columns});
  if (failed(result) || failed(frame.checkShape(op, "streams", streams, {tokens, n, features})))
    return failure();

  double epsilon = op.getEpsilon().convertToDouble();
  std::vector<float> row(n * features);
  for (int64_t t = 0; t < tokens; ++t) {
    streams.readFloats(t * n * features, row);
    double meanSquare = dot(row, row) / static_cast<double>(row.size());
    double factor = 1 / std::sqrt(meanSquare + op.getNormEpsilon().convertToDouble());
    std::vector<double> x(columns);
    for (int64_t i = 0; i < columns; ++i) {
      int64_t part = std::min<int64_t>(i / n, 2);
      x[i] = products.getReal(t * columns + i) * factor * scale.getReal(part) + base.getReal(i);
      if (part == 0)
        x[i] = sigmoid(x[i]) + epsilon;
      else if (part == 1)
        x[i] = 2 * sigmoid(x[i]);
    }
    if (columns > n)
      makeDoublyStochastic(MutableArrayRef(x).drop_front(2 * n), n,
                           static_cast<int64_t>(op.getIterations()), epsilon);
    result->writeReals(t * columns, x);
  }
  return frame.set(op.getResult(), std::move(*result));
}

static LogicalResult evaluateCollapse(HyperCollapseOp op, ReferenceFrame &frame) {
  const ReferenceTensor &streams = frame.getTensor(op.getStreams());
  const ReferenceTensor &weights = frame.getTensor(op.getWeights());
  int64_t tokens = streams.getDimSize(0), n = streams.getDimSize(1),
          features = streams.getDimSize(2);
  int64_t columns = weights.getDimSize(1);
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {tokens, features});
  if (failed(result) || failed(frame.checkShape(op, "weights", weights, {tokens, columns})))
    return failure();
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t d = 0; d < features; ++d) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i)
        sum += weights.getReal(t * columns + i) * streams.getReal((t * n + i) * features + d);
      result->set(t * features + d, Scalar::fromReal(sum));
    }
  return frame.set(op.getResult(), std::move(*result));
}

static LogicalResult evaluateExpand(HyperExpandOp op, ReferenceFrame &frame) {
  const ReferenceTensor &input = frame.getTensor(op.getInput());
  const ReferenceTensor &streams = frame.getTensor(op.getStreams());
  const ReferenceTensor &weights = frame.getTensor(op.getWeights());
  int64_t tokens = streams.getDimSize(0), n = streams.getDimSize(1),
          features = streams.getDimSize(2);
  int64_t columns = n * (n + 2);
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), streams.getShape());
  if (failed(result) || failed(frame.checkShape(op, "input", input, {tokens, features})) ||
      failed(frame.checkShape(op, "weights", weights, {tokens, columns})))
    return failure();
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t k = 0; k < n; ++k)
      for (int64_t d = 0; d < features; ++d) {
        double sum = weights.getReal(t * columns + n + k) * input.getReal(t * features + d);
        for (int64_t j = 0; j < n; ++j)
          sum += weights.getReal(t * columns + 2 * n + j * n + k) *
                 streams.getReal((t * n + j) * features + d);
        result->set((t * n + k) * features + d, Scalar::fromReal(sum));
      }
  return frame.set(op.getResult(), std::move(*result));
}

void mlir::moec::moe::attachHyperConnectionModels(MLIRContext *context) {
  attachEvaluation<HyperWeightsOp>(
      context, [](HyperWeightsOp op, ReferenceFrame &frame) { return evaluateWeights(op, frame); });
  attachEvaluation<HyperCollapseOp>(context, [](HyperCollapseOp op, ReferenceFrame &frame) {
    return evaluateCollapse(op, frame);
  });
  attachEvaluation<HyperExpandOp>(
      context, [](HyperExpandOp op, ReferenceFrame &frame) { return evaluateExpand(op, frame); });
}
