//===- DistributeKernels.cpp - a workgroup's share of a generic kernel
//-------------------------===//
//
// Results are cut along their leading dimensions into what the workgroup computes, and that into
// single rows; everything that leads to a row is computed with it. So all that lives between two
// ops is one row.
//
//===------------------------------------------------------------------------------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"

#include "mlir/Dialect/Affine/ViewLikeInterfaceUtils.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Interfaces/TilingInterface.h"

namespace mlir::moec {
#define GEN_PASS_DEF_DISTRIBUTEKERNELSPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;
using bufferization::MaterializeInDestinationOp;

/// More elements than this of a result are not computed at a time.
static constexpr int64_t largestTile = 1 << 16;

namespace {

/// The part of one dimension that is computed: where it starts and how long it is.
struct Extent {
  OpFoldResult offset, size;
};

class Distributor {
public:
  Distributor(func::FuncOp kernel, IRRewriter &rewriter) : kernel(kernel), rewriter(rewriter) {}

  LogicalResult run();

private:
  LogicalResult cutWorkgroup(MaterializeInDestinationOp first, ArrayRef<int64_t> tileSizes);
  scf::ForOp openLoop(Value begin, Value end);
  LogicalResult computeTile(MaterializeInDestinationOp root);
  void fuseProducers(tensor::ExtractSliceOp slice);
  bool sliceThrough(tensor::ExtractSliceOp slice);

  func::FuncOp kernel;
  IRRewriter &rewriter;
  /// What the workgroup computes of the leading dimensions of every result; of those that are not
  /// cut nothing: there results may differ in size.
  SmallVector<std::optional<Extent>> shared;
  SmallVector<tensor::ExtractSliceOp> worklist;
};

} // namespace

LogicalResult Distributor::run() {
  SmallVector<MaterializeInDestinationOp> roots;
  for (auto op : kernel.getBody().front().getOps<MaterializeInDestinationOp>())
    if (isa<MemRefType>(op.getDest().getType()))
      roots.push_back(op);
  if (roots.empty())
    return success();

  rewriter.setInsertionPoint(kernel.getBody().front().getTerminator());
  if (auto sizes = kernel->getAttrOfType<DenseI64ArrayAttr>(tileSizesAttribute))
    if (failed(cutWorkgroup(roots.front(), sizes)))
      return failure();
  for (MaterializeInDestinationOp root : roots) {
    OpBuilder::InsertionGuard guard(rewriter);
    if (failed(computeTile(root)))
      return failure();
  }
  return success();
}

scf::ForOp Distributor::openLoop(Value begin, Value end) {
  Value one = arith::ConstantIndexOp::create(rewriter, kernel.getLoc(), 1);
  auto loop = scf::ForOp::create(rewriter, kernel.getLoc(), begin, end, one);
  rewriter.setInsertionPointToStart(loop.getBody());
  return loop;
}

/// Computes the workgroup's extents of the cut dimensions and opens the loops over their rows.
LogicalResult Distributor::cutWorkgroup(MaterializeInDestinationOp first,
                                        ArrayRef<int64_t> tileSizes) {
  Location loc = kernel.getLoc();
  auto type = cast<MemRefType>(first.getDest().getType());
  if (int64_t(tileSizes.size()) > type.getRank())
    return kernel.emitError() << "kernel '" << kernel.getName() << "' has " << tileSizes.size()
                              << " tile sizes for a result of rank " << type.getRank();

  AffineExpr d0, s0, s1;
  bindDims(rewriter.getContext(), d0);
  bindSymbols(rewriter.getContext(), s0, s1);
  OpFoldResult workgroup = kernel.getArguments().back();
  shared.resize(tileSizes.size());
  SmallVector<Value> ends(tileSizes.size());
  for (int64_t i = int64_t(tileSizes.size()) - 1; i >= 0; --i) {
    int64_t tile = tileSizes[i];
    if (tile <= 0)
      continue;
    OpFoldResult size = memref::getMixedSize(rewriter, loc, first.getDest(), i);
    // The row-major index is taken apart from the last dimension on; what is left belongs to the
    // first one.
    OpFoldResult id = workgroup;
    if (llvm::any_of(tileSizes.take_front(i), [](int64_t other) { return other > 0; })) {
      OpFoldResult count =
          affine::makeComposedFoldedAffineApply(rewriter, loc, s0.ceilDiv(tile), {size});
      id = affine::makeComposedFoldedAffineApply(rewriter, loc, s0 % s1, {workgroup, count});
      workgroup =
          affine::makeComposedFoldedAffineApply(rewriter, loc, s0.floorDiv(s1), {workgroup, count});
    }
    OpFoldResult offset = affine::makeComposedFoldedAffineApply(rewriter, loc, s0 * tile, {id});
    AffineMap least = AffineMap::get(0, 2, {rewriter.getAffineConstantExpr(tile), s1 - s0},
                                     rewriter.getContext());
    OpFoldResult length = rewriter.getIndexAttr(tile);
    std::optional<int64_t> known = getConstantIntValue(size);
    if (tile != 1 && (!known || *known % tile != 0))
      length = affine::makeComposedFoldedAffineMin(rewriter, loc, least, {offset, size});
    shared[i] = Extent{offset, length};
  }

  // Rows one by one, except along the innermost dimension, whose elements are neighbours in memory.
  for (auto [i, extent] : llvm::enumerate(shared)) {
    if (!extent || int64_t(i) == type.getRank() - 1)
      continue;
    if (getConstantIntValue(extent->size) == 1)
      continue;
    Value begin = getValueOrCreateConstantIndexOp(rewriter, loc, extent->offset);
    OpFoldResult endOffset = affine::makeComposedFoldedAffineApply(
        rewriter, loc, s0 + s1, {extent->offset, extent->size});
    Value end = getValueOrCreateConstantIndexOp(rewriter, loc, endOffset);
    extent = Extent{openLoop(begin, end).getInductionVar(), rewriter.getIndexAttr(1)};
  }
  return success();
}

/// Computes a result's tile at the insertion point, row by row where dimensions are dynamic or too
/// large.
LogicalResult Distributor::computeTile(MaterializeInDestinationOp root) {
  Location loc = root.getLoc();
  auto type = cast<MemRefType>(root.getDest().getType());
  int64_t rank = type.getRank();
  SmallVector<OpFoldResult> offsets(rank, rewriter.getIndexAttr(0)), sizes,
      strides(rank, rewriter.getIndexAttr(1));
  for (int64_t i = 0; i < rank; ++i)
    sizes.push_back(memref::getMixedSize(rewriter, loc, root.getDest(), i));
  for (int64_t i = 0; i < std::min<int64_t>(rank, shared.size()); ++i)
    if (shared[i]) {
      offsets[i] = shared[i]->offset;
      sizes[i] = shared[i]->size;
    }

  int64_t elements = 1;
  for (OpFoldResult size : sizes)
    elements *= getConstantIntValue(size).value_or(1);
  for (int64_t i = 0; i < rank - 1; ++i) {
    std::optional<int64_t> size = getConstantIntValue(sizes[i]);
    if (size && (*size <= 1 || elements <= largestTile))
      continue;
    if (size)
      elements /= *size;
    Value zero = arith::ConstantIndexOp::create(rewriter, loc, 0);
    offsets[i] =
        openLoop(zero, getValueOrCreateConstantIndexOp(rewriter, loc, sizes[i])).getInductionVar();
    sizes[i] = rewriter.getIndexAttr(1);
  }

  Value destination =
      memref::SubViewOp::create(rewriter, loc, root.getDest(), offsets, sizes, strides);
  auto slice =
      tensor::ExtractSliceOp::create(rewriter, loc, root.getSource(), offsets, sizes, strides);
  MaterializeInDestinationOp::create(rewriter, loc, TypeRange(), slice, destination,
                                     /*restrict=*/true, /*writable=*/true);
  rewriter.eraseOp(root);
  fuseProducers(slice);
  return success();
}

/// Replaces a slice of something that is itself a part of another value. Returns whether it did.
/// Slices of arguments stay: they become views of their buffers, and equal ones are found equal.
bool Distributor::sliceThrough(tensor::ExtractSliceOp slice) {
  Location loc = slice.getLoc();
  Operation *producer = slice.getSource().getDefiningOp();
  if (auto inner = dyn_cast<tensor::ExtractSliceOp>(producer)) {
    SmallVector<OpFoldResult> offsets, sizes, strides;
    if (failed(affine::mergeOffsetsSizesAndStrides(
            rewriter, loc, inner, slice, inner.getDroppedDims(), offsets, sizes, strides)))
      return false;
    auto merged = tensor::ExtractSliceOp::create(rewriter, loc, slice.getType(), inner.getSource(),
                                                 offsets, sizes, strides);
    rewriter.replaceOp(slice, merged);
    worklist.push_back(merged);
    return true;
  }
  if (auto cast = dyn_cast<tensor::CastOp>(producer)) {
    if (!isa<RankedTensorType>(cast.getSource().getType()))
      return false;
    auto inner = tensor::ExtractSliceOp::create(rewriter, loc, slice.getType(), cast.getSource(),
                                                slice.getMixedOffsets(), slice.getMixedSizes(),
                                                slice.getMixedStrides());
    rewriter.replaceOp(slice, inner);
    worklist.push_back(inner);
    return true;
  }
  if (auto empty = dyn_cast<tensor::EmptyOp>(producer)) {
    rewriter.replaceOpWithNewOp<tensor::EmptyOp>(slice, slice.getMixedSizes(),
                                                 slice.getType().getElementType());
    return true;
  }
  return false;
}

/// Computes the slice where it stands instead of taking it out of the whole.
void Distributor::fuseProducers(tensor::ExtractSliceOp first) {
  worklist.push_back(first);
  while (!worklist.empty()) {
    tensor::ExtractSliceOp slice = worklist.pop_back_val();
    auto result = dyn_cast<OpResult>(slice.getSource());
    if (!result)
      continue;
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(slice);
    if (sliceThrough(slice) || !isa<TilingInterface>(result.getOwner()))
      continue;
    FailureOr<TilingResult> tiled =
        tensor::replaceExtractSliceWithTiledProducer(rewriter, slice, result);
    if (failed(tiled))
      continue;
    Value value = tiled->tiledValues.front();
    if (value.getType() != slice.getType())
      value = tensor::CastOp::create(rewriter, slice.getLoc(), slice.getType(), value);
    rewriter.replaceOp(slice, value);
    for (Operation *op : tiled->tiledOps)
      for (Value operand : op->getOperands())
        if (auto inner = operand.getDefiningOp<tensor::ExtractSliceOp>())
          if (!llvm::is_contained(worklist, inner))
            worklist.push_back(inner);
  }
}

namespace {
struct DistributeKernels : moec::impl::DistributeKernelsPassBase<DistributeKernels> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    for (func::FuncOp kernel : getKernels(getOperation())) {
      if (failed(Distributor(kernel, rewriter).run()))
        return signalPassFailure();
      kernel->removeAttr(tileSizesAttribute);
    }
  }
};
} // namespace
