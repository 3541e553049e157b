#include "Strategies.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

OpFoldResult mlir::moec::countTiles(OpBuilder &builder, Location loc, Value tensor, int64_t tile,
                                    int64_t factor) {
  AffineExpr rows = builder.getAffineDimExpr(0);
  AffineMap map = AffineMap::get(1, 0, rows.ceilDiv(tile) * factor);
  return affine::makeComposedFoldedAffineApply(builder, loc, map,
                                               tensor::getMixedSize(builder, loc, tensor, 0));
}
