// moe.linear, moe.head_linear, moe.embedding, moe.gather_rows.
#include "MoEModels.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::moec::moe;

static LogicalResult evaluateLinear(LinearOp op, ReferenceFrame &frame) {
  const ReferenceTensor &input = frame.getTensor(op.getInput());
  const ReferenceTensor *bias = frame.getOptionalTensor(op.getBias());
  const ReferenceTensor *residual = frame.getOptionalTensor(op.getResidual());
  const ReferenceTensor *normWeight = frame.getOptionalTensor(op.getNormWeight());
  WeightRows weight(frame, op.getWeight());
  int64_t tokens = input.getDimSize(0), k = weight.getRowLength();
  int64_t n = getLogicalShape(op.getWeight().getType())[0];
  if (ShapedType::isDynamic(n))
    n = frame.getTensor(op.getWeight()).getDimSize(0);
  if (failed(frame.checkShape(op, "input", input, {tokens, k})) ||
      (bias && failed(frame.checkShape(op, "bias", *bias, {n}))) ||
      (residual && failed(frame.checkShape(op, "residual", *residual, {tokens, n}))) ||
      (normWeight && failed(frame.checkShape(op, "norm weight", *normWeight, {k}))))
    return failure();
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {tokens, n});
  if (failed(result))
    return failure();

  std::vector<float> x = input.getFloats();
  if (normWeight) {
    // What moe.rms_norm would give, its rounding included.
    std::vector<float> scale = normWeight->getFloats();
    for (int64_t t = 0; t < tokens; ++t) {
      MutableArrayRef<float> row(x.data() + t * k, k);
      llvm::copy(roundTo(input.getElementType(),
                         normalizeRow(row, scale, op.getEpsilon()->convertToDouble(), false)),
                 row.begin());
    }
  }
  std::vector<float> row(k);
  for (int64_t i = 0; i < n; ++i) {
    weight.read(i, row);
    for (int64_t t = 0; t < tokens; ++t) {
      double sum = dot(ArrayRef(x).slice(t * k, k), row);
      if (bias)
        sum += bias->getReal(i);
      if (residual)
        sum += residual->getReal(t * n + i);
      result->set(t * n + i, Scalar::fromReal(sum));
    }
  }
  return frame.set(op, std::move(*result));
}

static LogicalResult evaluateHeadLinear(HeadLinearOp op, ReferenceFrame &frame) {
  const ReferenceTensor &input = frame.getTensor(op.getInput());
  const ReferenceTensor &weight = frame.getTensor(op.getWeight());
  int64_t tokens = input.getDimSize(0), heads = weight.getDimSize(0);
  int64_t n = weight.getDimSize(op.getTransposed() ? 2 : 1);
  int64_t k = weight.getDimSize(op.getTransposed() ? 1 : 2);
  if (failed(frame.checkShape(op, "input", input, {tokens, heads, k})))
    return failure();
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {tokens, heads, n});
  if (failed(result))
    return failure();
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < k; ++j)
          sum += input.getReal((t * heads + h) * k + j) *
                 weight.getReal(op.getTransposed() ? (h * k + j) * n + i : (h * n + i) * k + j);
        result->set((t * heads + h) * n + i, Scalar::fromReal(sum));
      }
  return frame.set(op, std::move(*result));
}

/// Copies rows of `source`, converted to the result's element type.
static LogicalResult copyRows(Operation *op, ReferenceFrame &frame, const ReferenceTensor &source,
                              ArrayRef<int64_t> rows) {
  int64_t width = source.getDimSize(1);
  FailureOr<ReferenceTensor> result =
      frame.allocate(op->getOpResult(0), {static_cast<int64_t>(rows.size()), width});
  if (failed(result))
    return failure();
  for (auto [to, from] : llvm::enumerate(rows))
    for (int64_t i = 0; i < width; ++i)
      result->set(to * width + i, source.get(from * width + i));
  return frame.set(op->getResult(0), std::move(*result));
}

static LogicalResult evaluateEmbedding(EmbeddingOp op, ReferenceFrame &frame) {
  const ReferenceTensor &ids = frame.getTensor(op.getIds());
  const ReferenceTensor &table = frame.getTensor(op.getTable());
  SmallVector<int64_t> rows;
  for (int64_t t = 0; t < ids.getSize(); ++t) {
    int64_t id = ids.getInteger(t);
    if (id < 0 || id >= table.getDimSize(0))
      return op.emitError() << "while interpreting: id " << id << " of token " << t
                            << " is not below the table's " << table.getDimSize(0) << " rows";
    rows.push_back(id);
  }
  return copyRows(op, frame, table, rows);
}

static LogicalResult evaluateGatherRows(GatherRowsOp op, ReferenceFrame &frame) {
  const ReferenceTensor &input = frame.getTensor(op.getInput());
  const ReferenceTensor &rows = frame.getTensor(op.getRows());
  if (input.getDimSize(0) == 0 && rows.getSize() != 0)
    return op.emitError() << "while interpreting: cannot take rows of an empty input";
  SmallVector<int64_t> clamped;
  for (int64_t r = 0; r < rows.getSize(); ++r)
    clamped.push_back(std::clamp<int64_t>(rows.getInteger(r), 0, input.getDimSize(0) - 1));
  return copyRows(op, frame, input, clamped);
}

void mlir::moec::moe::attachLinearModels(MLIRContext *context) {
  attachEvaluation<LinearOp>(
      context, [](LinearOp op, ReferenceFrame &frame) { return evaluateLinear(op, frame); });
  attachEvaluation<HeadLinearOp>(context, [](HeadLinearOp op, ReferenceFrame &frame) {
    return evaluateHeadLinear(op, frame);
  });
  attachEvaluation<EmbeddingOp>(
      context, [](EmbeddingOp op, ReferenceFrame &frame) { return evaluateEmbedding(op, frame); });
  attachEvaluation<GatherRowsOp>(context, [](GatherRowsOp op, ReferenceFrame &frame) {
    return evaluateGatherRows(op, frame);
  });
}
