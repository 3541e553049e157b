//===- FuseResidual.cpp - a residual is added where the other summand is made -----------------===//

#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::moec {
#define GEN_PASS_DEF_FUSERESIDUAL
#include "moec/Transforms/Passes.h.inc"

namespace {

struct FuseAddition : OpRewritePattern<arith::AddFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::AddFOp add, PatternRewriter &rewriter) const override {
    if (!isa<RankedTensorType>(add.getType()))
      return failure();
    // The later summand absorbs the earlier one: in a residual stream that is the layer's output.
    for (auto [producer, residual] :
         {std::pair(add.getRhs(), add.getLhs()), std::pair(add.getLhs(), add.getRhs())}) {
      auto op = producer.getDefiningOp<moe::AcceptsResidualOpInterface>();
      if (!op || op.hasResidual() || !producer.hasOneUse() || producer.getType() != add.getType())
        continue;
      if (Operation *other = residual.getDefiningOp();
          other && (other->getBlock() != op->getBlock() || !other->isBeforeInBlock(op)))
        continue;
      rewriter.modifyOpInPlace(op, [&] { op.setResidual(residual); });
      rewriter.replaceOp(add, producer);
      return success();
    }
    return failure();
  }
};

struct FuseResidualPass : impl::FuseResidualBase<FuseResidualPass> {
  void runOnOperation() override {
    auto count = [&] {
      int64_t additions = 0;
      getOperation()->walk([&](arith::AddFOp) { ++additions; });
      return additions;
    };
    int64_t before = count();
    RewritePatternSet patterns(&getContext());
    populateFuseResidualPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    fused += before - count();
  }
};

} // namespace

void populateFuseResidualPatterns(RewritePatternSet &patterns) {
  patterns.add<FuseAddition>(patterns.getContext());
}

} // namespace mlir::moec
