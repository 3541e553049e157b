#include "OpSupport.h"

using namespace mlir;
using namespace mlir::moec::moe;

/// Streams of a static number and width.
static LogicalResult checkStreams(Operation *op, RankedTensorType streams) {
  if (!streams.isDynamicDim(1) && !streams.isDynamicDim(2) && streams.getDimSize(1) > 0)
    return success();
  return op->emitOpError() << "expects a static number of streams and of features, got " << streams;
}

LogicalResult HyperWeightsOp::verify() {
  if (failed(checkStreams(*this, getStreams().getType())))
    return failure();
  ArrayRef<int64_t> products = getProducts().getType().getShape();
  int64_t tokens = products[0], columns = products[1];
  int64_t streams = getStreams().getType().getDimSize(1), full = streams * (streams + 2);
  if (columns != streams && columns != full)
    return emitOpError() << "expects products of " << streams << " or " << full << " columns for "
                         << streams << " streams, got " << columns;
  if (int64_t count = getIterations(); count < 1)
    return emitOpError() << "expects at least 1 iteration, got " << count;
  for (auto [name, value] :
       {std::pair("epsilon", getEpsilon()), {"norm_epsilon", getNormEpsilon()}})
    if (value.isNegative() || value.isNaN())
      return emitOpError() << "expects " << name << " of at least 0";
  if (failed(checkShape(*this, "streams", getStreams(),
                        {tokens, streams, getStreams().getType().getDimSize(2)})) ||
      failed(checkShape(*this, "scale", getScale(), {columns == streams ? 1 : 3})) ||
      failed(checkShape(*this, "base", getBase(), {columns})))
    return failure();
  return checkShape(*this, "result", getResult(), products);
}

LogicalResult HyperWeightsOp::reifyResultShapes(OpBuilder &builder,
                                                ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getProducts(), shapes);
}

bool HyperWeightsOp::isTokenOperand(unsigned index) { return index < 2; }

LogicalResult HyperCollapseOp::verify() {
  if (failed(checkStreams(*this, getStreams().getType())))
    return failure();
  ArrayRef<int64_t> streams = getStreams().getType().getShape();
  RankedTensorType weights = getWeights().getType();
  if (weights.isDynamicDim(1) || weights.getDimSize(1) < streams[1])
    return emitOpError() << "expects at least " << streams[1] << " weights for a token, got "
                         << weights;
  if (failed(checkShape(*this, "weights", getWeights(), {streams[0], weights.getDimSize(1)})))
    return failure();
  return checkShape(*this, "result", getResult(), {streams[0], streams[2]});
}

LogicalResult HyperCollapseOp::reifyResultShapes(OpBuilder &builder,
                                                 ReifiedRankedShapedTypeDims &shapes) {
  return reifyRows(builder, *this, getStreams(), shapes);
}

bool HyperCollapseOp::isTokenOperand(unsigned) { return true; }

LogicalResult HyperExpandOp::verify() {
  if (failed(checkStreams(*this, getStreams().getType())))
    return failure();
  ArrayRef<int64_t> streams = getStreams().getType().getShape();
  if (failed(checkShape(*this, "input", getInput(), {streams[0], streams[2]})))
    return failure();
  return checkShape(*this, "weights", getWeights(), {streams[0], streams[1] * (streams[1] + 2)});
}

LogicalResult HyperExpandOp::reifyResultShapes(OpBuilder &builder,
                                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyLike(builder, *this, getStreams(), shapes);
}

bool HyperExpandOp::isTokenOperand(unsigned) { return true; }
