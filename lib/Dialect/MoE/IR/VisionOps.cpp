#include "OpSupport.h"

using namespace mlir;
using namespace mlir::moec::moe;

LogicalResult InterpolatePositionsOp::verify() {
  auto grid = getGrid().getType();
  if (!grid.hasStaticShape() || grid.getDimSize(0) < 1 || grid.getDimSize(1) < 1)
    return emitOpError() << "expects a static grid of at least one row and one column, got "
                         << grid;
  return checkShape(*this, "result", getResult(),
                    {getRows().getType().getDimSize(0), grid.getDimSize(2)});
}

LogicalResult InterpolatePositionsOp::reifyResultShapes(OpBuilder &builder,
                                                        ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getRows(), shapes);
}

bool InterpolatePositionsOp::isTokenOperand(unsigned index) { return index != 0; }

LogicalResult ReplaceRowsOp::verify() {
  ArrayRef<int64_t> shape = getInput().getType().getShape();
  if (getReplacements().getType().getDimSize(0) == 0)
    return emitOpError() << "expects at least one row of replacements";
  if (failed(
          checkShape(*this, "replacements", getReplacements(), {ShapedType::kDynamic, shape[1]})))
    return failure();
  return checkShape(*this, "rows", getRows(), {shape[0]});
}

LogicalResult ReplaceRowsOp::reifyResultShapes(OpBuilder &builder,
                                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getInput(), shapes);
}

bool ReplaceRowsOp::isTokenOperand(unsigned index) { return index != 1; }
