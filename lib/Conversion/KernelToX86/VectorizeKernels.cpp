//===- VectorizeKernels.cpp - linalg on buffers as vector code
//----------------------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"
#include "VectorDimension.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"

namespace mlir::moec {
#define GEN_PASS_DEF_VECTORIZEKERNELSPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Emits the loops around one op: rows, then vectors along the vector dimension, then the other
/// reductions, so that an accumulator stays in registers.
class LoopNest {
public:
  LoopNest(IRRewriter &rewriter, linalg::LinalgOp op, unsigned vectorDimension, int64_t chunk)
      : rewriter(rewriter), op(op), vectorDimension(vectorDimension), chunk(chunk),
        ranges(op.createLoopRanges(rewriter, op.getLoc())), iterators(op.getIteratorTypesArray()) {
    for (Range range : ranges) {
      offsets.push_back(range.offset);
      sizes.push_back(range.size);
    }
  }

  LogicalResult emit() {
    openLoops(utils::IteratorType::parallel);
    return emitVectors();
  }

private:
  Value toValue(OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(rewriter, op.getLoc(), value);
  }

  /// One iteration at a time over the dimensions of a kind, except the vector dimension.
  void openLoops(utils::IteratorType kind) {
    for (unsigned dim = 0; dim < ranges.size(); ++dim) {
      if (dim == vectorDimension || iterators[dim] != kind ||
          getConstantIntValue(ranges[dim].size) == 1)
        continue;
      auto loop = scf::ForOp::create(rewriter, op.getLoc(), toValue(ranges[dim].offset),
                                     toValue(ranges[dim].size), toValue(rewriter.getIndexAttr(1)));
      rewriter.setInsertionPointToStart(loop.getBody());
      offsets[dim] = loop.getInductionVar();
      sizes[dim] = rewriter.getIndexAttr(1);
    }
  }

  LogicalResult emitVectors() {
    OpFoldResult full = ranges[vectorDimension].size;
    std::optional<int64_t> known = getConstantIntValue(full);
    if (known && *known <= 2 * chunk)
      return emitPart(rewriter.getIndexAttr(0), full, /*vectorize=*/true);

    AffineExpr s0 = rewriter.getAffineSymbolExpr(0);
    OpFoldResult main = affine::makeComposedFoldedAffineApply(rewriter, op.getLoc(),
                                                              s0.floorDiv(chunk) * chunk, {full});
    OpFoldResult rest =
        affine::makeComposedFoldedAffineApply(rewriter, op.getLoc(), s0 % chunk, {full});
    auto loop = scf::ForOp::create(rewriter, op.getLoc(), toValue(rewriter.getIndexAttr(0)),
                                   toValue(main), toValue(rewriter.getIndexAttr(chunk)));
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(loop.getBody());
      if (failed(
              emitPart(loop.getInductionVar(), rewriter.getIndexAttr(chunk), /*vectorize=*/true)))
        return failure();
    }
    if (getConstantIntValue(rest) == 0)
      return success();
    return emitPart(main, rest, getConstantIntValue(rest).has_value());
  }

  LogicalResult emitPart(OpFoldResult offset, OpFoldResult size, bool vectorize) {
    OpBuilder::InsertionGuard guard(rewriter);
    offsets[vectorDimension] = offset;
    sizes[vectorDimension] = size;
    SmallVector<OpFoldResult> outerOffsets = offsets, outerSizes = sizes;
    openLoops(utils::IteratorType::reduction);
    auto tiling = cast<TilingInterface>(op.getOperation());
    FailureOr<TilingResult> tiled = tiling.getTiledImplementation(rewriter, offsets, sizes);
    offsets = outerOffsets;
    sizes = outerSizes;
    if (failed(tiled))
      return failure();
    // What cannot be vectorised after all becomes a loop later.
    Operation *part = tiled->tiledOps.front();
    rewriter.setInsertionPoint(part);
    if (vectorize && succeeded(linalg::vectorize(rewriter, part)))
      rewriter.eraseOp(part);
    return success();
  }

  IRRewriter &rewriter;
  linalg::LinalgOp op;
  unsigned vectorDimension;
  int64_t chunk;
  SmallVector<Range> ranges;
  SmallVector<utils::IteratorType> iterators;
  SmallVector<OpFoldResult> offsets, sizes;
};

struct VectorizeKernels : moec::impl::VectorizeKernelsPassBase<VectorizeKernels> {
  void runOnOperation() override {
    FailureOr<TargetDescription> target = TargetDescription::get(getOperation());
    if (failed(target))
      return signalPassFailure();
    vectorBytes = target->getVectorBytes();

    RewritePatternSet cleanup(&getContext());
    vector::populateCastAwayVectorLeadingOneDimPatterns(cleanup);
    vector::populateVectorTransferDropUnitDimsPatterns(cleanup);
    vector::populateDropUnitDimWithShapeCastPatterns(cleanup);
    vector::populateSinkVectorOpsPatterns(cleanup);
    vector::populateVectorShapeCastLoweringPatterns(cleanup);
    FrozenRewritePatternSet frozen(std::move(cleanup));

    for (func::FuncOp kernel : getKernels(getOperation())) {
      if (failed(copiesToLinalg(kernel)))
        return signalPassFailure();
      SmallVector<linalg::LinalgOp> ops;
      kernel.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
      for (linalg::LinalgOp op : ops)
        if (succeeded(vectorize(op)))
          ++numVectorized;
        else
          ++numScalar;
      if (failed(applyPatternsGreedily(kernel, frozen)))
        return signalPassFailure();
    }
  }

  /// Copies of buffers are loops like all others: a call of memcpy would leave the shared object.
  LogicalResult copiesToLinalg(func::FuncOp kernel) {
    IRRewriter rewriter(&getContext());
    kernel.walk([&](memref::CopyOp op) {
      rewriter.setInsertionPoint(op);
      if (op.getSource() != op.getTarget()) {
        auto type = cast<MemRefType>(op.getTarget().getType());
        AffineMap identity = rewriter.getMultiDimIdentityMap(type.getRank());
        SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
        linalg::GenericOp::create(rewriter, op.getLoc(), op.getSource(), op.getTarget(),
                                  ArrayRef{identity, identity}, iterators,
                                  [](OpBuilder &builder, Location loc, ValueRange arguments) {
                                    linalg::YieldOp::create(builder, loc, arguments.front());
                                  });
      }
      rewriter.eraseOp(op);
    });
    return success();
  }

  /// Vectors are loaded and stored whole: elements of the last dimension must be neighbours in
  /// memory.
  static bool isContiguous(linalg::LinalgOp op) {
    return llvm::all_of(op->getOperandTypes(), [](Type operand) {
      auto type = dyn_cast<MemRefType>(operand);
      SmallVector<int64_t> strides;
      int64_t offset;
      return !type || type.getRank() == 0 ||
             (succeeded(type.getStridesAndOffset(strides, offset)) && strides.back() == 1);
    });
  }

  LogicalResult vectorize(linalg::LinalgOp op) {
    if (!op.hasPureBufferSemantics() || !isVectorizable(op) ||
        !isa<TilingInterface>(op.getOperation()))
      return failure();
    std::optional<unsigned> dimension = getVectorDimension(op);
    if (!dimension || !isContiguous(op))
      return failure();
    // Lanes of the widest element, two registers at a time.
    int64_t widest = 1;
    for (Type type : op->getOperandTypes())
      widest = std::max<int64_t>(widest, getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8);
    for (Operation &inner : *op.getBlock())
      for (Type type : inner.getResultTypes())
        if (type.isIntOrFloat())
          widest = std::max<int64_t>(widest, type.getIntOrFloatBitWidth() / 8);
    int64_t chunk = 2 * vectorBytes / std::max<int64_t>(widest, 4);
    // A reduction along the vector dimension was split before; one that was not has no fixed
    // neutral element.
    if (op.getIteratorTypesArray()[*dimension] == utils::IteratorType::reduction) {
      int64_t size = op.getStaticLoopRanges()[*dimension];
      if (ShapedType::isDynamic(size) || size > 2 * chunk)
        return failure();
    }
    IRRewriter rewriter(&getContext());
    rewriter.setInsertionPoint(op);
    LoopNest nest(rewriter, op, *dimension, chunk);
    if (failed(nest.emit()))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }

  unsigned vectorBytes = 16;
};

} // namespace
