#include "OpSupport.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec::moe;

LogicalResult RouteOp::verify() {
  ArrayRef<int64_t> logits = getLogits().getType().getShape();
  int64_t tokens = logits[0], experts = logits[1], k = getTopK();
  if (ShapedType::isDynamic(experts))
    return emitOpError() << "expects a static number of experts";
  if (k < 1 || k > static_cast<int64_t>(experts))
    return emitOpError() << "expects top_k between 1 and the number of experts (" << experts
                         << "), got " << k;
  int64_t groups = getGroups(), topGroups = getTopGroups();
  if (groups < 1 || experts % groups != 0)
    return emitOpError() << "expects the number of groups to divide the number of experts ("
                         << experts << "), got " << groups;
  if (topGroups < 1 || topGroups > groups)
    return emitOpError() << "expects top_groups between 1 and groups (" << groups << "), got "
                         << topGroups;
  if (groups > 1 && k > topGroups * (experts / groups))
    return emitOpError() << "expects top_k of at most " << topGroups * (experts / groups)
                         << ", the experts of " << topGroups << " groups, got " << k;
  if (failed(checkShape(*this, "selection bias", getSelectionBias(), {experts})) ||
      failed(checkShape(*this, "weights", getWeights(), {tokens, k})))
    return failure();
  return checkShape(*this, "indices", getIndices(), {tokens, k});
}

LogicalResult RouteOp::reifyResultShapes(OpBuilder &builder, ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getLogits(), shapes);
}

bool RouteOp::isTokenOperand(unsigned index) { return index == 0; }

LogicalResult HashRouteOp::verify() {
  RankedTensorType logits = getLogits().getType(), table = getTable().getType();
  if (logits.isDynamicDim(1) || logits.getDimSize(1) < 1)
    return emitOpError() << "expects a static number of experts, got " << logits;
  if (!table.hasStaticShape() || table.getDimSize(0) < 1)
    return emitOpError() << "expects a table of static shape with a row for each id, got " << table;
  if (getScore() == ScoreFunction::softmax)
    return emitOpError() << "expects a score of one logit each, sigmoid or sqrt_softplus, got "
                            "softmax";
  int64_t tokens = logits.getDimSize(0), choices = table.getDimSize(1);
  if (failed(checkShape(*this, "tokens", getTokens(), {tokens})) ||
      failed(checkShape(*this, "weights", getWeights(), {tokens, choices})))
    return failure();
  return checkShape(*this, "indices", getIndices(), {tokens, choices});
}

LogicalResult HashRouteOp::reifyResultShapes(OpBuilder &builder,
                                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getLogits(), shapes);
}

bool HashRouteOp::isTokenOperand(unsigned index) { return index < 2; }

LogicalResult GroupTokensOp::verify() {
  ArrayRef<int64_t> indices = getIndices().getType().getShape();
  if (ShapedType::isDynamic(indices[1]))
    return emitOpError() << "expects a static number of choices";
  if (getOffsets().getType().isDynamicDim(0) || getOffsets().getType().getDimSize(0) < 2)
    return emitOpError() << "expects offsets of a static size of at least 2";
  int64_t pairs =
      ShapedType::isDynamic(indices[0]) ? ShapedType::kDynamic : indices[0] * indices[1];
  return checkShape(*this, "pairs", getPairs(), {pairs});
}

LogicalResult GroupTokensOp::reifyResultShapes(OpBuilder &builder,
                                               ReifiedRankedShapedTypeDims &shapes) {
  Location loc = getLoc();
  int64_t k = getIndices().getType().getDimSize(1);
  shapes.push_back({builder.getIndexAttr(getOffsets().getType().getDimSize(0))});
  OpFoldResult tokens = tensor::getMixedSize(builder, loc, getIndices(), 0);
  if (auto size = getConstantIntValue(tokens)) {
    shapes.push_back({builder.getIndexAttr(*size * k)});
    return success();
  }
  Value factor = arith::ConstantIndexOp::create(builder, loc, k);
  Value pairs = arith::MulIOp::create(builder, loc, cast<Value>(tokens), factor);
  shapes.push_back({OpFoldResult(pairs)});
  return success();
}
