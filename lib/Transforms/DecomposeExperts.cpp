//===- DecomposeExperts.cpp - experts as sorting, two products and a weighted sum -------------===//

#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Transforms/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::moec {
#define GEN_PASS_DEF_DECOMPOSEEXPERTS
#include "moec/Transforms/Passes.h.inc"

namespace {

struct Decompose : OpRewritePattern<moe::ExpertsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::ExpertsOp op, PatternRewriter &rewriter) const override {
    int64_t k = op.getIndices().getType().getDimSize(1);
    if (ShapedType::isDynamic(k))
      return rewriter.notifyMatchFailure(op, "the number of choices is dynamic");
    Location loc = op.getLoc();
    ArrayRef<int64_t> gateUp = moe::getLogicalShape(op.getGateUp().getType());
    ArrayRef<int64_t> down = moe::getLogicalShape(op.getDown().getType());
    int64_t tokens = op.getIndices().getType().getDimSize(0);
    int64_t pairs = ShapedType::isDynamic(tokens) ? ShapedType::kDynamic : tokens * k;
    Type i32 = rewriter.getI32Type();

    auto grouped =
        moe::GroupTokensOp::create(rewriter, loc, RankedTensorType::get({gateUp[0] + 1}, i32),
                                   RankedTensorType::get({pairs}, i32), op.getIndices());
    auto inner = moe::GroupedLinearOp::create(
        rewriter, loc,
        RankedTensorType::get({pairs, gateUp[1] / 2}, op.getInput().getType().getElementType()),
        op.getInput(), grouped.getOffsets(), grouped.getPairs(), op.getGateUp(), op.getGateUpBias(),
        k, op.getActivation(), /*gather=*/true, /*scatter=*/false,
        /*strategy=*/nullptr);
    // Not rounded before they are added: that would cost more accuracy than the sum's own rounding.
    auto outer = moe::GroupedLinearOp::create(
        rewriter, loc, RankedTensorType::get({pairs, down[1]}, rewriter.getF32Type()),
        inner.getResult(),
        grouped.getOffsets(), grouped.getPairs(), op.getDown(), op.getDownBias(), k,
        /*activation=*/nullptr, /*gather=*/false, /*scatter=*/true, /*strategy=*/nullptr);
    rewriter.replaceOpWithNewOp<moe::CombineOp>(op, op.getResult().getType(), outer.getResult(),
                                                op.getWeights(), op.getIndices(), op.getResidual());
    return success();
  }
};

struct DecomposeExpertsPass : impl::DecomposeExpertsBase<DecomposeExpertsPass> {
  void runOnOperation() override {
    getOperation()->walk([&](moe::ExpertsOp) { ++decomposed; });
    RewritePatternSet patterns(&getContext());
    populateDecomposeExpertsPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

void populateDecomposeExpertsPatterns(RewritePatternSet &patterns) {
  patterns.add<Decompose>(patterns.getContext());
}

} // namespace mlir::moec
