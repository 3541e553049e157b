#include "OpSupport.h"

using namespace mlir;
using namespace mlir::moec::moe;

LogicalResult SampleOp::verify() {
  int64_t vocabulary = getLogits().getType().getDimSize(1), most = int64_t(1) << 22;
  if (ShapedType::isDynamic(vocabulary) || vocabulary < 1 || vocabulary > most)
    return emitOpError() << "expects logits of 1 to " << most << " columns, got "
                         << getLogits().getType();
  int64_t tokens = getRows().getType().getDimSize(0);
  if (failed(checkShape(*this, "temperature", getTemperature(), {tokens})) ||
      failed(checkShape(*this, "top_k", getTopK(), {tokens})) ||
      failed(checkShape(*this, "top_p", getTopP(), {tokens})) ||
      failed(checkShape(*this, "random", getRandom(), {tokens})))
    return failure();
  return checkShape(*this, "tokens", getTokens(), {tokens});
}

LogicalResult SampleOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getRows(), shapes);
}
