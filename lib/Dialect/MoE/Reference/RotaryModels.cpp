// moe.rope, and the rotation that other ops apply.
#include "MoEModels.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec::moe;

void mlir::moec::moe::rotateHeads(MutableArrayRef<double> heads, int64_t dim, int64_t position,
                                  RotaryAttr rotary) {
  ArrayRef<float> frequencies = rotary.getFrequencies().asArrayRef();
  auto n = static_cast<int64_t>(frequencies.size());
  for (int64_t i = 0; i < n; ++i) {
    // The angle alone is in single precision: that is what models are trained with.
    double angle = static_cast<float>(position) * frequencies[i];
    double c = rotary.getMagnitude() * std::cos(angle), s = rotary.getMagnitude() * std::sin(angle);
    for (size_t head = 0; head < heads.size(); head += dim) {
      double *first = heads.data() + head + rotary.getOffset();
      double &a = first[rotary.getInterleaved() ? 2 * i : i];
      double &b = first[rotary.getInterleaved() ? 2 * i + 1 : i + n];
      double rotated = a * c - b * s;
      b = b * c + a * s;
      a = rotated;
    }
  }
}

static LogicalResult evaluateRope(RopeOp op, ReferenceFrame &frame) {
  const ReferenceTensor &input = frame.getTensor(op.getInput());
  const ReferenceTensor &positions = frame.getTensor(op.getPositions());
  int64_t tokens = input.getDimSize(0), dim = input.getDimSize(2),
          width = input.getDimSize(1) * dim;
  if (failed(frame.checkShape(op, "positions", positions, {tokens})))
    return failure();
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), input.getShape());
  if (failed(result))
    return failure();
  std::vector<float> row(width);
  for (int64_t t = 0; t < tokens; ++t) {
    input.readFloats(t * width, row);
    std::vector<double> heads(row.begin(), row.end());
    rotateHeads(heads, dim, positions.getInteger(t), op.getRotary());
    result->writeReals(t * width, heads);
  }
  return frame.set(op, std::move(*result));
}

void mlir::moec::moe::attachRotaryModels(MLIRContext *context) {
  attachEvaluation<RopeOp>(
      context, [](RopeOp op, ReferenceFrame &frame) { return evaluateRope(op, frame); });
}
