//===- FoldUnitBatch.cpp - compute on [tokens, ...] what is written on [1, tokens, ...]
//--------------===//

#include "moec/Transforms/Raise/Passes.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::moec {
#define GEN_PASS_DEF_FOLDUNITBATCH
#include "moec/Transforms/Raise/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// The expand_shape that makes `value`, if all it does is to put a dimension of size 1 in front.
static tensor::ExpandShapeOp unitExpansion(Value value) {
  auto expand = value.getDefiningOp<tensor::ExpandShapeOp>();
  if (!expand)
    return {};
  auto groups = expand.getReassociationIndices();
  if (groups.empty() || groups.front() != ReassociationIndices{0, 1} ||
      expand.getType().getDimSize(0) != 1)
    return {};
  for (const ReassociationIndices &group : ArrayRef(groups).drop_front())
    if (group.size() != 1)
      return {};
  return expand;
}

namespace {

/// op(expand(a), expand(b)) -> expand(op(a, b)) for elementwise ops.
struct MoveBelowElementwise final : OpTraitRewritePattern<OpTrait::Elementwise> {
  MoveBelowElementwise(MLIRContext *context, Pass::Statistic &moved)
      : OpTraitRewritePattern(context), moved(moved) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (op->getNumResults() != 1 || op->getNumOperands() == 0 ||
        !isa<RankedTensorType>(op->getResult(0).getType()))
      return failure();
    SmallVector<Value> operands;
    tensor::ExpandShapeOp first;
    for (Value operand : op->getOperands()) {
      tensor::ExpandShapeOp expand = unitExpansion(operand);
      if (!expand)
        return failure();
      first = first ? first : expand;
      operands.push_back(expand.getSrc());
    }
    auto resultType = cast<RankedTensorType>(op->getResult(0).getType());
    Type narrow = first.getSrcType().clone(resultType.getElementType());
    Operation *inner = Operation::create(op->getLoc(), op->getName(), TypeRange(narrow), operands,
                                         op->getDiscardableAttrDictionary(),
                                         op->getPropertiesStorage(), BlockRange(), 0);
    rewriter.insert(inner);
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(op, resultType, inner->getResult(0),
                                                       first.getReassociationIndices(),
                                                       first.getMixedOutputShape());
    ++moved;
    return success();
  }

  Pass::Statistic &moved;
};

/// norm(expand(x)) -> expand(norm(x)).
template <typename Norm>
struct MoveBelowNorm final : OpRewritePattern<Norm> {
  MoveBelowNorm(MLIRContext *context, Pass::Statistic &moved)
      : OpRewritePattern<Norm>(context), moved(moved) {}

  LogicalResult matchAndRewrite(Norm op, PatternRewriter &rewriter) const override {
    tensor::ExpandShapeOp expand = unitExpansion(op.getInput());
    if (!expand)
      return failure();
    auto inner = cast<Norm>(rewriter.clone(*op));
    rewriter.modifyOpInPlace(inner, [&] {
      inner.getInputMutable().assign(expand.getSrc());
      inner.getResult().setType(cast<RankedTensorType>(expand.getSrc().getType()));
    });
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(op, op.getType(), inner.getResult(),
                                                       expand.getReassociationIndices(),
                                                       expand.getMixedOutputShape());
    ++moved;
    return success();
  }

  Pass::Statistic &moved;
};

/// trunc(norm(ext(x))) -> norm(x): a norm computes in f32 and rounds once anyway.
template <typename Norm>
struct FoldNormCasts final : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern<arith::TruncFOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    auto norm = op.getIn().getDefiningOp<Norm>();
    auto wide = norm ? norm.getInput().template getDefiningOp<arith::ExtFOp>() : arith::ExtFOp();
    if (!wide || wide.getIn().getType() != op.getType())
      return failure();
    auto narrow = cast<Norm>(rewriter.clone(*norm));
    rewriter.modifyOpInPlace(narrow, [&] {
      narrow.getInputMutable().assign(wide.getIn());
      narrow.getResult().setType(cast<RankedTensorType>(op.getType()));
    });
    rewriter.replaceOp(op, narrow.getResult());
    return success();
  }
};

/// ext(linear(x)) -> linear(x) in f32: a product sums in f32 and need not be rounded in between.
struct FoldLinearCast final : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern<arith::ExtFOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    auto linear = op.getIn().getDefiningOp<moe::LinearOp>();
    if (!linear || linear.getResidual() || !linear->hasOneUse() ||
        !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    auto wide = cast<moe::LinearOp>(rewriter.clone(*linear));
    rewriter.modifyOpInPlace(
        wide, [&] { wide.getResult().setType(cast<RankedTensorType>(op.getType())); });
    rewriter.replaceOp(op, wide.getResult());
    return success();
  }
};

/// The vector that `value` repeats for each row, or null.
static Value repeatedRow(Value value) {
  auto broadcast = value.getDefiningOp<linalg::BroadcastOp>();
  if (!broadcast)
    return {};
  auto source = cast<RankedTensorType>(broadcast.getInput().getType());
  auto rank = cast<RankedTensorType>(value.getType()).getRank();
  // Everything but the last dimension is new.
  for (auto [i, dimension] : llvm::enumerate(broadcast.getDimensions()))
    if (dimension != static_cast<int64_t>(i))
      return {};
  if (source.getRank() != 1 || static_cast<int64_t>(broadcast.getDimensions().size()) + 1 != rank)
    return {};
  return broadcast.getInput();
}

/// linear(x) + bias -> linear(x) bias(b), also where the sum is written on [1, tokens, features].
struct FoldBias final : OpRewritePattern<arith::AddFOp> {
  FoldBias(MLIRContext *context, Pass::Statistic &folded)
      : OpRewritePattern(context), folded(folded) {}

  LogicalResult matchAndRewrite(arith::AddFOp op, PatternRewriter &rewriter) const override {
    for (auto [product, other] :
         {std::pair(op.getLhs(), op.getRhs()), std::pair(op.getRhs(), op.getLhs())}) {
      Value bias = repeatedRow(other);
      tensor::ExpandShapeOp expand = unitExpansion(product);
      Value inner = expand ? expand.getSrc() : product;
      auto linear = inner.getDefiningOp<moe::LinearOp>();
      if (!bias || !linear || linear.getBias() || linear.getResidual() || !inner.hasOneUse() ||
          !product.hasOneUse())
        continue;
      rewriter.setInsertionPoint(op); // the bias may be defined after the product
      auto biased = cast<moe::LinearOp>(rewriter.clone(*linear));
      rewriter.modifyOpInPlace(biased, [&] { biased.getBiasMutable().assign(bias); });
      Value result = biased;
      if (expand)
        result = tensor::ExpandShapeOp::create(rewriter, op.getLoc(), expand.getType(), result,
                                               expand.getReassociationIndices(),
                                               expand.getMixedOutputShape());
      rewriter.replaceOp(op, result);
      ++folded;
      return success();
    }
    return failure();
  }

  Pass::Statistic &folded;
};

struct FoldUnitBatchPass : moec::impl::FoldUnitBatchBase<FoldUnitBatchPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns
        .add<MoveBelowElementwise, MoveBelowNorm<moe::RMSNormOp>, MoveBelowNorm<moe::LayerNormOp>>(
            &getContext(), moved);
    patterns.add<FoldBias>(&getContext(), biases);
    patterns.add<FoldNormCasts<moe::RMSNormOp>, FoldNormCasts<moe::LayerNormOp>, FoldLinearCast>(
        &getContext());
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
