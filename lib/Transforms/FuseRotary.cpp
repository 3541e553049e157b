//===- FuseRotary.cpp - rotary embeddings are applied where their result is read --------------===//

#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Transforms/Passes.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::moec {
#define GEN_PASS_DEF_FUSEROTARY
#include "moec/Transforms/Passes.h.inc"

namespace {

struct FuseRope : OpRewritePattern<moe::RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::RopeOp rope, PatternRewriter &rewriter) const override {
    if (!rope.getResult().hasOneUse())
      return failure();
    OpOperand &use = *rope.getResult().use_begin();
    auto user = dyn_cast<moe::AcceptsRotaryOpInterface>(use.getOwner());
    if (!user || user.getAppliedRotary() || &user.getRotatedOperand() != &use ||
        user.getRotaryPositions() != rope.getPositions())
      return failure();
    rewriter.modifyOpInPlace(user, [&] {
      user.setAppliedRotary(rope.getRotary());
      use.set(rope.getInput());
    });
    rewriter.eraseOp(rope);
    return success();
  }
};

struct FuseRotaryPass : impl::FuseRotaryBase<FuseRotaryPass> {
  void runOnOperation() override {
    auto count = [&] {
      int64_t ropes = 0;
      getOperation()->walk([&](moe::RopeOp) { ++ropes; });
      return ropes;
    };
    int64_t before = count();
    RewritePatternSet patterns(&getContext());
    populateFuseRotaryPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    fused += before - count();
  }
};

} // namespace

void populateFuseRotaryPatterns(RewritePatternSet &patterns) {
  patterns.add<FuseRope>(patterns.getContext());
}

} // namespace mlir::moec
