// moe.interpolate_positions and moe.replace_rows.
#include "MoEModels.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::moec::moe;

namespace {

/// Between which two entries of a grid's side a place lies, and how far it is from the first one.
struct Place {
  /// Coordinates are in single precision: which entries they lie between depends on it.
  Place(int64_t index, int64_t count, int64_t entries) {
    float scale = static_cast<float>(entries) / static_cast<float>(std::max<int64_t>(count, 1));
    float coordinate = (static_cast<float>(index) + 0.5f) * scale - 0.5f;
    coordinate = std::clamp(coordinate, 0.0f, static_cast<float>(entries - 1));
    first = static_cast<int64_t>(std::floor(coordinate));
    second = std::min(first + 1, entries - 1);
    fraction = coordinate - static_cast<float>(first);
  }

  int64_t first, second;
  double fraction;
};

} // namespace

static LogicalResult evaluateInterpolatePositions(InterpolatePositionsOp op,
                                                  ReferenceFrame &frame) {
  const ReferenceTensor &grid = frame.getTensor(op.getGrid());
  const ReferenceTensor &rows = frame.getTensor(op.getRows());
  int64_t patches = rows.getSize(), width = grid.getDimSize(2);
  for (Value other : {op.getHeights(), op.getColumns(), op.getWidths()})
    if (failed(frame.checkShape(op, "places", frame.getTensor(other), {patches})))
      return failure();
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), {patches, width});
  if (failed(result))
    return failure();
  for (int64_t t = 0; t < patches; ++t) {
    auto at = [&](Value index, Value count, int64_t entries) {
      return Place(frame.getTensor(index).getInteger(t), frame.getTensor(count).getInteger(t),
                   entries);
    };
    Place y = at(op.getRows(), op.getHeights(), grid.getDimSize(0));
    Place x = at(op.getColumns(), op.getWidths(), grid.getDimSize(1));
    for (int64_t i = 0; i < width; ++i) {
      auto entry = [&](int64_t row, int64_t column) {
        return grid.getReal((row * grid.getDimSize(1) + column) * width + i);
      };
      auto between = [](double first, double second, double fraction) {
        return (1 - fraction) * first + fraction * second;
      };
      double value = between(
          between(entry(y.first, x.first), entry(y.first, x.second), x.fraction),
          between(entry(y.second, x.first), entry(y.second, x.second), x.fraction), y.fraction);
      result->set(t * width + i, Scalar::fromReal(value));
    }
  }
  return frame.set(op, std::move(*result));
}

static LogicalResult evaluateReplaceRows(ReplaceRowsOp op, ReferenceFrame &frame) {
  const ReferenceTensor &input = frame.getTensor(op.getInput());
  const ReferenceTensor &replacements = frame.getTensor(op.getReplacements());
  const ReferenceTensor &rows = frame.getTensor(op.getRows());
  int64_t tokens = input.getDimSize(0), width = input.getDimSize(1),
          count = replacements.getDimSize(0);
  if (count < 1)
    return op.emitError() << "while interpreting: expects at least one row of replacements";
  if (failed(frame.checkShape(op, "rows", rows, {tokens})) ||
      failed(frame.checkShape(op, "replacements", replacements, {count, width})))
    return failure();
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), input.getShape());
  if (failed(result))
    return failure();
  for (int64_t t = 0; t < tokens; ++t) {
    int64_t row = rows.getInteger(t);
    const ReferenceTensor &source = row < 0 ? input : replacements;
    int64_t first = (row < 0 ? t : std::min(row, count - 1)) * width;
    for (int64_t i = 0; i < width; ++i)
      result->set(t * width + i, source.get(first + i));
  }
  return frame.set(op, std::move(*result));
}

void mlir::moec::moe::attachVisionModels(MLIRContext *context) {
  attachEvaluation<InterpolatePositionsOp>(context,
                                           [](InterpolatePositionsOp op, ReferenceFrame &frame) {
                                             return evaluateInterpolatePositions(op, frame);
                                           });
  attachEvaluation<ReplaceRowsOp>(context, [](ReplaceRowsOp op, ReferenceFrame &frame) {
    return evaluateReplaceRows(op, frame);
  });
}
