//===- HeadLinear.cpp - products of heads with weights of their own, as linalg ----------------===//

#include "LinalgCode.h"
#include "Patterns.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

struct ConvertHeadLinear : OpRewritePattern<moe::HeadLinearOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::HeadLinearOp op, PatternRewriter &rewriter) const override {
    LinalgCode code(rewriter, op.getLoc());
    SmallVector<OpFoldResult> weightSizes = code.sizesOf(op.getWeight());
    SmallVector<OpFoldResult> sizes = {code.sizesOf(op.getInput())[0], weightSizes[0],
                                       weightSizes[op.getTransposed() ? 2 : 1]};
    // Over (token, head, column, k).
    AffineMap ofWeight =
        op.getTransposed() ? code.project(4, {1, 3, 2}) : code.project(4, {1, 2, 3});
    Value sum =
        code.generic(4, 3, {op.getInput(), op.getWeight()}, {code.project(4, {0, 1, 3}), ofWeight},
                     code.filled(sizes, 0.0), code.project(4, {0, 1, 2}),
                     [&](ArrayRef<Value> elements, Value accumulator) -> Value {
                       Value product = arith::MulFOp::create(
                           rewriter, code.loc, code.widen(elements[0]), code.widen(elements[1]));
                       return arith::AddFOp::create(rewriter, code.loc, accumulator, product);
                     });
    RankedTensorType type = op.getResult().getType();
    if (!type.getElementType().isF32())
      sum = code.map(sizes, type.getElementType(), sum, code.identity(3),
                     [&](ArrayRef<Value> elements, Value) {
                       return code.narrow(elements[0], type.getElementType());
                     });
    if (sum.getType() != type)
      sum = tensor::CastOp::create(rewriter, code.loc, type, sum);
    rewriter.replaceOp(op, sum);
    return success();
  }
};

} // namespace

void mlir::moec::populateHeadLinearToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertHeadLinear>(patterns.getContext());
}
