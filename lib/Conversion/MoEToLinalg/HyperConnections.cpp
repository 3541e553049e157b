//===- HyperConnections.cpp - hyper_collapse and hyper_expand as linalg -----------------------===//

#include "LinalgCode.h"
#include "Patterns.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Columns [first, first + count) of [tokens, columns] numbers.
Value takeColumns(LinalgCode &code, Value numbers, int64_t first, int64_t count) {
  SmallVector<OpFoldResult> sizes = code.sizesOf(numbers);
  sizes[1] = code.rewriter.getIndexAttr(count);
  SmallVector<OpFoldResult> offsets = {code.rewriter.getIndexAttr(0),
                                       code.rewriter.getIndexAttr(first)};
  SmallVector<OpFoldResult> strides(2, code.rewriter.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(code.rewriter, code.loc, numbers, offsets, sizes, strides);
}

Value addProduct(LinalgCode &code, Value sum, Value weight, Value element) {
  Value product =
      arith::MulFOp::create(code.rewriter, code.loc, weight, code.widen(element));
  return arith::AddFOp::create(code.rewriter, code.loc, sum, product);
}

/// `sums`, f32, rounded to the type of a result of the same shape.
Value roundTo(LinalgCode &code, Value sums, RankedTensorType type) {
  if (type.getElementType().isF32())
    return sums;
  unsigned rank = type.getRank();
  return code.map(code.sizesOf(sums), type.getElementType(), sums, code.identity(rank),
                  [&](ArrayRef<Value> elements, Value) {
                    return code.narrow(elements[0], type.getElementType());
                  });
}

struct ConvertHyperCollapse : OpRewritePattern<moe::HyperCollapseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::HyperCollapseOp op, PatternRewriter &rewriter) const override {
    LinalgCode code(rewriter, op.getLoc());
    SmallVector<OpFoldResult> sizes = code.sizesOf(op.getStreams());
    int64_t streams = op.getStreams().getType().getDimSize(1);
    Value pre = takeColumns(code, op.getWeights(), 0, streams);
    // Over [tokens, features, streams].
    Value sums = code.generic(
        3, 2, {pre, op.getStreams()}, {code.project(3, {0, 2}), code.project(3, {0, 2, 1})},
        code.filled({sizes[0], sizes[2]}, 0.0), code.project(3, {0, 1}),
        [&](ArrayRef<Value> elements, Value sum) {
          return addProduct(code, sum, elements[0], elements[1]);
        });
    rewriter.replaceOp(op, roundTo(code, sums, op.getResult().getType()));
    return success();
  }
};

struct ConvertHyperExpand : OpRewritePattern<moe::HyperExpandOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::HyperExpandOp op, PatternRewriter &rewriter) const override {
    LinalgCode code(rewriter, op.getLoc());
    SmallVector<OpFoldResult> sizes = code.sizesOf(op.getStreams());
    auto type = op.getResult().getType();
    int64_t streams = type.getDimSize(1);
    Value post = takeColumns(code, op.getWeights(), streams, streams);
    Value flatMix = takeColumns(code, op.getWeights(), 2 * streams, streams * streams);
    auto mixType = RankedTensorType::get({type.getDimSize(0), streams, streams}, code.f32());
    SmallVector<ReassociationIndices> groups = {{0}, {1, 2}};
    SmallVector<OpFoldResult> mixSizes = {sizes[0], sizes[1], sizes[1]};
    Value mix = tensor::ExpandShapeOp::create(rewriter, op.getLoc(), mixType, flatMix, groups,
                                              mixSizes);
    Value sums = code.map(sizes, code.f32(), {post, op.getInput()},
                          {code.project(3, {0, 1}), code.project(3, {0, 2})},
                          [&](ArrayRef<Value> elements, Value) -> Value {
                            return arith::MulFOp::create(rewriter, op.getLoc(), elements[0],
                                                         code.widen(elements[1]));
                          });
    // Over [tokens, streams of the result, features, streams of the input].
    sums = code.generic(4, 3, {mix, op.getStreams()},
                        {code.project(4, {0, 3, 1}), code.project(4, {0, 3, 2})}, sums,
                        code.project(4, {0, 1, 2}), [&](ArrayRef<Value> elements, Value sum) {
                          return addProduct(code, sum, elements[0], elements[1]);
                        });
    rewriter.replaceOp(op, roundTo(code, sums, type));
    return success();
  }
};

} // namespace

void mlir::moec::populateHyperConnectionToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertHyperCollapse, ConvertHyperExpand>(patterns.getContext());
}
