//===- SplitReductions.cpp - sums in vector lanes
//----------------------------------------------===//
//
// A reduction along the dimension whose elements are neighbours in memory is kept in several
// vectors of partial results, which are combined once at the end. The order is fixed by the op's
// size and the target alone.
//
//===------------------------------------------------------------------------------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"
#include "VectorDimension.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/Transforms/TileUsingInterface.h"

namespace mlir::moec {
#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// Independent sums hide the latency of an addition.
static constexpr int64_t partialVectors = 4;

/// Computes one row of results at a time. Returns the op on the row.
static FailureOr<linalg::GenericOp> isolateRow(IRRewriter &rewriter, linalg::GenericOp op) {
  SmallVector<OpFoldResult> tileSizes;
  bool isRow = true;
  for (auto [range, iterator] : llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray())) {
    bool isParallel = iterator == utils::IteratorType::parallel;
    tileSizes.push_back(rewriter.getIndexAttr(isParallel && range != 1 ? 1 : 0));
    isRow &= !isParallel || range == 1;
  }
  if (isRow)
    return op;
  rewriter.setInsertionPoint(op);
  FailureOr<scf::SCFTilingResult> tiled =
      scf::tileUsingSCF(rewriter, cast<TilingInterface>(op.getOperation()),
                        scf::SCFTilingOptions().setTileSizes(tileSizes));
  if (failed(tiled) || tiled->tiledOps.size() != 1)
    return failure();
  rewriter.replaceOp(op, tiled->replacements);
  return cast<linalg::GenericOp>(tiled->tiledOps.front());
}

/// Cuts the reduction at `at`: a first op that reduces what comes before and one that goes on from
/// its result. Returns the first.
static FailureOr<linalg::GenericOp> cutReduction(IRRewriter &rewriter, linalg::GenericOp op,
                                                 unsigned dim, int64_t at) {
  rewriter.setInsertionPoint(op);
  SmallVector<OpFoldResult> offsets, sizes;
  for (int64_t range : op.getStaticLoopRanges()) {
    offsets.push_back(rewriter.getIndexAttr(0));
    sizes.push_back(rewriter.getIndexAttr(range));
  }
  int64_t size = op.getStaticLoopRanges()[dim];
  auto tiling = cast<TilingInterface>(op.getOperation());
  sizes[dim] = rewriter.getIndexAttr(at);
  FailureOr<TilingResult> first = tiling.getTiledImplementation(rewriter, offsets, sizes);
  if (failed(first))
    return failure();
  offsets[dim] = rewriter.getIndexAttr(at);
  sizes[dim] = rewriter.getIndexAttr(size - at);
  FailureOr<TilingResult> second = tiling.getTiledImplementation(rewriter, offsets, sizes);
  if (failed(second))
    return failure();
  auto rest = cast<linalg::GenericOp>(second->tiledOps.front());
  rewriter.modifyOpInPlace(rest,
                           [&] { rest.getDpsInitsMutable()[0].set(first->tiledValues.front()); });
  rewriter.replaceOp(op, second->tiledValues);
  return cast<linalg::GenericOp>(first->tiledOps.front());
}

static void split(IRRewriter &rewriter, linalg::GenericOp op, unsigned vectorBytes) {
  if (op.getNumResults() != 1 || op.getNumReductionLoops() != 1 || !isVectorizable(op))
    return;
  std::optional<unsigned> dim = getVectorDimension(op);
  if (!dim || op.getIteratorTypesArray()[*dim] != utils::IteratorType::reduction)
    return;
  Type element = getElementTypeOrSelf(op.getResult(0).getType());
  int64_t size = op.getStaticLoopRanges()[*dim],
          width = vectorBytes * 8 / element.getIntOrFloatBitWidth();
  if (ShapedType::isDynamic(size) || size < 2 * width)
    return;
  int64_t lanes = size >= partialVectors * width ? partialVectors * width : width;

  FailureOr<linalg::GenericOp> row = isolateRow(rewriter, op);
  if (failed(row))
    return;
  if (size % lanes != 0) {
    row = cutReduction(rewriter, *row, *dim, size - size % lanes);
    if (failed(row))
      return;
  }
  SmallVector<OpFoldResult> tileSizes(row->getNumLoops(), rewriter.getIndexAttr(0));
  tileSizes[*dim] = rewriter.getIndexAttr(lanes);
  scf::SCFTilingOptions options;
  options.setTileSizes(tileSizes);
  options.setReductionTilingStrategy(ReductionTilingStrategy::PartialReductionOuterReduction);
  options.setReductionDims({*dim});
  rewriter.setInsertionPoint(*row);
  FailureOr<scf::SCFTilingResult> tiled =
      scf::tileUsingSCF(rewriter, cast<TilingInterface>(row->getOperation()), options);
  if (succeeded(tiled))
    rewriter.replaceOp(*row, tiled->replacements);
}

namespace {
struct SplitReductions : moec::impl::SplitReductionsPassBase<SplitReductions> {
  void runOnOperation() override {
    FailureOr<TargetDescription> target = TargetDescription::get(getOperation());
    if (failed(target))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    for (func::FuncOp kernel : getKernels(getOperation())) {
      SmallVector<linalg::GenericOp> ops;
      kernel.walk([&](linalg::GenericOp op) { ops.push_back(op); });
      for (linalg::GenericOp op : ops)
        split(rewriter, op, target->getVectorBytes());
    }
  }
};
} // namespace
