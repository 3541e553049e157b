//===- FuseKernels.cpp - elementwise chains inside a kernel
//------------------------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"

namespace mlir::moec {
#define GEN_PASS_DEF_FUSEKERNELSPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// Nothing but conversions between element types: cheaper to repeat than to keep.
static bool onlyConverts(linalg::LinalgOp op) {
  return llvm::all_of(op.getBlock()->without_terminator(), [](Operation &inner) {
    return isa<arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp, arith::ExtUIOp, arith::ConstantOp>(
        inner);
  });
}

/// A producer is computed inside its consumer when that repeats no work or cannot be avoided.
static bool isWorthFusing(OpOperand *operand) {
  auto producer = operand->get().getDefiningOp<linalg::LinalgOp>();
  auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
  if (!producer || !consumer)
    return false;
  if (onlyConverts(producer))
    return true;
  if (producer.getNumLoops() != consumer.getNumLoops() ||
      !consumer.getMatchingIndexingMap(operand).isPermutation())
    return false;
  // A row of unknown length has no place between two ops: it is computed again for each of them.
  auto type = dyn_cast<RankedTensorType>(operand->get().getType());
  bool isUnbounded = type && type.getRank() > 0 && type.isDynamicDim(type.getRank() - 1);
  return producer->hasOneUse() || isUnbounded;
}

namespace {

/// A reshape of an argument is a reshape of its buffer.
struct ReshapeBuffer : OpRewritePattern<tensor::CollapseShapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::CollapseShapeOp op,
                                PatternRewriter &rewriter) const override {
    auto source = op.getSrc().getDefiningOp<bufferization::ToTensorOp>();
    if (!source)
      return failure();
    Value buffer = memref::CollapseShapeOp::create(rewriter, op.getLoc(), source.getBuffer(),
                                                   op.getReassociationIndices());
    rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
        op, op.getType(), buffer, source.getRestrict(), source.getWritable());
    return success();
  }
};

struct ExpandBuffer : OpRewritePattern<tensor::ExpandShapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ExpandShapeOp op,
                                PatternRewriter &rewriter) const override {
    auto source = op.getSrc().getDefiningOp<bufferization::ToTensorOp>();
    if (!source)
      return failure();
    Value buffer = memref::ExpandShapeOp::create(rewriter, op.getLoc(), op.getType().getShape(),
                                                 source.getBuffer(), op.getReassociationIndices(),
                                                 op.getMixedOutputShape());
    rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
        op, op.getType(), buffer, source.getRestrict(), source.getWritable());
    return success();
  }
};

/// A result that is reshaped at the end is written through a reshaped buffer.
struct WriteCollapsed : OpRewritePattern<bufferization::MaterializeInDestinationOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(bufferization::MaterializeInDestinationOp op,
                                PatternRewriter &rewriter) const override {
    if (!isa<MemRefType>(op.getDest().getType()))
      return failure();
    Value source, buffer;
    if (auto collapse = op.getSource().getDefiningOp<tensor::CollapseShapeOp>()) {
      source = collapse.getSrc();
      auto type = cast<RankedTensorType>(source.getType());
      // Leading dimensions of the result stay what they are: workgroups are cut along them.
      SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, op.getLoc(), source);
      buffer = memref::ExpandShapeOp::create(rewriter, op.getLoc(), type.getShape(), op.getDest(),
                                             collapse.getReassociationIndices(), sizes);
    } else if (auto expand = op.getSource().getDefiningOp<tensor::ExpandShapeOp>()) {
      source = expand.getSrc();
      buffer = memref::CollapseShapeOp::create(rewriter, op.getLoc(), op.getDest(),
                                               expand.getReassociationIndices());
    } else if (auto cast = op.getSource().getDefiningOp<tensor::CastOp>()) {
      source = cast.getSource();
      auto type = dyn_cast<RankedTensorType>(source.getType());
      if (!type)
        return failure();
      buffer = op.getDest();
      auto bufferType = MemRefType::get(type.getShape(), type.getElementType());
      if (buffer.getType() != bufferType)
        buffer = memref::CastOp::create(rewriter, op.getLoc(), bufferType, buffer);
    } else {
      return failure();
    }
    bufferization::MaterializeInDestinationOp::create(rewriter, op.getLoc(), TypeRange(), source,
                                                      buffer, op.getRestrict(), op.getWritable());
    rewriter.eraseOp(op);
    return success();
  }
};

/// A concatenation that is a result is written part by part.
struct WriteConcatenation : OpRewritePattern<bufferization::MaterializeInDestinationOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(bufferization::MaterializeInDestinationOp op,
                                PatternRewriter &rewriter) const override {
    auto concat = op.getSource().getDefiningOp<tensor::ConcatOp>();
    if (!concat || !isa<MemRefType>(op.getDest().getType()))
      return failure();
    // Parts of different sizes cannot be cut alike.
    auto tileSizes =
        op->getParentOfType<func::FuncOp>()->getAttrOfType<DenseI64ArrayAttr>(tileSizesAttribute);
    if (tileSizes && int64_t(concat.getDim()) < tileSizes.size() && tileSizes[concat.getDim()] > 0)
      return failure();
    Location loc = op.getLoc();
    int64_t rank = concat.getResultType().getRank(), dim = concat.getDim();
    SmallVector<OpFoldResult> offsets(rank, rewriter.getIndexAttr(0)),
        strides(rank, rewriter.getIndexAttr(1));
    AffineExpr sum = rewriter.getAffineSymbolExpr(0) + rewriter.getAffineSymbolExpr(1);
    for (Value part : concat.getInputs()) {
      SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, part);
      Value view = memref::SubViewOp::create(rewriter, loc, op.getDest(), offsets, sizes, strides);
      bufferization::MaterializeInDestinationOp::create(rewriter, loc, TypeRange(), part, view,
                                                        op.getRestrict(), op.getWritable());
      offsets[dim] =
          affine::makeComposedFoldedAffineApply(rewriter, loc, sum, {offsets[dim], sizes[dim]});
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// The same number everywhere.
struct FillInsteadOfSplat : OpRewritePattern<tensor::SplatOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::SplatOp op, PatternRewriter &rewriter) const override {
    Value empty =
        tensor::EmptyOp::create(rewriter, op.getLoc(), op.getType(), op.getDynamicSizes());
    rewriter.replaceOpWithNewOp<linalg::FillOp>(op, op.getInput(), empty);
    return success();
  }
};

struct FuseKernels : moec::impl::FuseKernelsPassBase<FuseKernels> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet generalize(context);
    linalg::populateElementwiseToLinalgConversionPatterns(generalize);
    linalg::populateLinalgNamedOpsGeneralizationPatterns(generalize);
    generalize.add<FillInsteadOfSplat>(context);
    FrozenRewritePatternSet frozenGeneralize(std::move(generalize));

    RewritePatternSet fuse(context);
    linalg::populateElementwiseOpsFusionPatterns(fuse, isWorthFusing);
    linalg::populateFoldReshapeOpsByExpansionPatterns(fuse, [](OpOperand *) { return true; });
    linalg::populateEraseUnusedOperandsAndResultsPatterns(fuse);
    linalg::populateInlineConstantOperandsPatterns(fuse);
    linalg::GenericOp::getCanonicalizationPatterns(fuse, context);
    tensor::populateReassociativeReshapeFoldingPatterns(fuse);
    tensor::populateFoldTensorEmptyPatterns(fuse);
    tensor::CastOp::getCanonicalizationPatterns(fuse, context);
    tensor::DimOp::getCanonicalizationPatterns(fuse, context);
    memref::populateResolveRankedShapedTypeResultDimsPatterns(fuse);
    fuse.add<ReshapeBuffer, ExpandBuffer, WriteCollapsed, WriteConcatenation>(context);
    FrozenRewritePatternSet frozenFuse(std::move(fuse));

    for (func::FuncOp kernel : getKernels(getOperation())) {
      decomposeAggregates(kernel);
      if (failed(applyPatternsGreedily(kernel, frozenGeneralize)) ||
          failed(applyPatternsGreedily(kernel, frozenFuse)))
        return signalPassFailure();
    }
  }

  /// Softmax and the like as simpler ops.
  void decomposeAggregates(func::FuncOp kernel) {
    IRRewriter rewriter(&getContext());
    kernel.walk([&](linalg::AggregatedOpInterface op) {
      rewriter.setInsertionPoint(op);
      FailureOr<SmallVector<Value>> values = op.decomposeOperation(rewriter);
      if (succeeded(values))
        rewriter.replaceOp(op, *values);
    });
  }
};

} // namespace
