//===- VectorDimension.cpp - which loop of a linalg op becomes vectors ------------------------===//

#include "VectorDimension.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

std::optional<unsigned> mlir::moec::getVectorDimension(linalg::LinalgOp op) {
  SmallVector<int64_t> scores(op.getNumLoops(), 0);
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (map.getNumResults() == 0)
      continue;
    // An operand of one more dimension is taken to hold several times the data.
    if (auto last = dyn_cast<AffineDimExpr>(map.getResults().back()))
      scores[last.getPosition()] += int64_t(1) << (2 * std::min(map.getNumResults(), 16u));
  }
  std::optional<unsigned> best;
  for (unsigned dim = 0; dim < scores.size(); ++dim)
    if (scores[dim] > 0 && (!best || scores[dim] >= scores[*best]))
      best = dim;
  return best;
}

static bool isWholeBytes(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIntOrFloat() && element.getIntOrFloatBitWidth() % 8 == 0;
}

bool mlir::moec::isVectorizable(linalg::LinalgOp op) {
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isWholeBytes(operand.get().getType()))
      return false;
    for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults())
      if (!isa<AffineDimExpr>(expr))
        return false;
  }
  return llvm::all_of(op.getBlock()->without_terminator(), [](Operation &inner) {
    return isa<linalg::IndexOp>(inner) ||
           (inner.getNumRegions() == 0 && isPure(&inner) &&
            isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()));
  });
}
