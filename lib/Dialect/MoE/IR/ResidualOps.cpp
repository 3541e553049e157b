#include "OpSupport.h"

using namespace mlir;
using namespace mlir::moec::moe;

LogicalResult MixResidualsOp::verify() {
  if (getCandidates().empty())
    return emitOpError() << "expects at least one candidate";
  ArrayRef<int64_t> shape = getResult().getType().getShape();
  for (auto [index, candidate] : llvm::enumerate(getCandidates()))
    if (failed(checkShape(*this, "candidate " + std::to_string(index), candidate, shape)))
      return failure();
  if (getEpsilon().isNegative() || getEpsilon().isNaN())
    return emitOpError() << "expects an epsilon of at least 0";
  return checkShape(*this, "weight", getWeight(), {shape.back()});
}

LogicalResult MixResidualsOp::reifyResultShapes(OpBuilder &builder,
                                                ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getCandidates().front(), shapes);
}

bool MixResidualsOp::isTokenOperand(unsigned index) { return index < getCandidates().size(); }
