// moe.mix_residuals.
#include "MoEModels.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::moec::moe;

static LogicalResult evaluateMixResiduals(MixResidualsOp op, ReferenceFrame &frame) {
  const ReferenceTensor &first = frame.getTensor(op.getCandidates().front());
  int64_t tokens = first.getDimSize(0), width = first.getDimSize(1);
  const ReferenceTensor &weight = frame.getTensor(op.getWeight());
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), first.getShape());
  if (failed(result) || failed(frame.checkShape(op, "weight", weight, {width})))
    return failure();
  std::vector<const ReferenceTensor *> candidates;
  for (Value candidate : op.getCandidates()) {
    candidates.push_back(&frame.getTensor(candidate));
    if (failed(frame.checkShape(op, "candidate", *candidates.back(), first.getShape())))
      return failure();
  }

  std::vector<float> scale = weight.getFloats(), row(width);
  for (int64_t token = 0; token < tokens; ++token) {
    std::vector<double> scores, mix(width, 0.0);
    for (const ReferenceTensor *candidate : candidates) {
      candidate->readFloats(token * width, row);
      double score = 0;
      for (double term : normalizeRow(row, scale, op.getEpsilon().convertToDouble(),
                                      /*unitOffset=*/false))
        score += term;
      scores.push_back(score);
    }
    double largest = *std::max_element(scores.begin(), scores.end()), total = 0;
    for (double score : scores)
      total += std::exp(score - largest);
    for (auto [candidate, score] : llvm::zip_equal(candidates, scores)) {
      candidate->readFloats(token * width, row);
      for (int64_t i = 0; i < width; ++i)
        mix[i] += std::exp(score - largest) / total * row[i];
    }
    result->writeReals(token * width, mix);
  }
  return frame.set(op.getResult(), std::move(*result));
}

void mlir::moec::moe::attachResidualModels(MLIRContext *context) {
  attachEvaluation<MixResidualsOp>(context, [](MixResidualsOp op, ReferenceFrame &frame) {
    return evaluateMixResiduals(op, frame);
  });
}
