// tensor: gather and scatter of slices by coordinates.
#include "IterationSpace.h"
#include "Models.h"
#include "TensorModels.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec::moe;

namespace {
/// How gather and scatter see a tensor: `dims` come from the coordinates, the others belong to the
/// slice.
class CoordinateAccess {
public:
  CoordinateAccess(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) : shape(shape), dims(dims) {
    for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim)
      sliceSizes.push_back(llvm::is_contained(dims, dim) ? 1 : shape[dim]);
  }

  /// The size of a slice with its coordinate dimensions as 1.
  ArrayRef<int64_t> getSliceSizes() const { return sliceSizes; }

  /// The sizes of a slice as `rank` dimensions of another tensor hold it: with or without the
  /// dimensions of 1.
  SmallVector<int64_t> getSliceShape(int64_t rank) const {
    if (rank == static_cast<int64_t>(shape.size()))
      return sliceSizes;
    SmallVector<int64_t> result;
    for (auto [dim, size] : llvm::enumerate(shape))
      if (!llvm::is_contained(dims, static_cast<int64_t>(dim)))
        result.push_back(size);
    return result;
  }

  /// Row-major index of a point of the slice number `slice`. Emits a diagnostic when the
  /// coordinates are out of bounds.
  FailureOr<int64_t> getIndex(Operation *op, const ReferenceTensor &coordinates, int64_t slice,
                              ArrayRef<int64_t> point) const {
    SmallVector<int64_t> position(point);
    for (auto [i, dim] : llvm::enumerate(dims)) {
      int64_t coordinate = coordinates.getInteger(slice * dims.size() + i);
      if (coordinate < 0 || coordinate >= shape[dim])
        return op->emitError() << "while interpreting: coordinate " << coordinate
                               << " is out of bounds of a dimension of size " << shape[dim];
      position[dim] = coordinate;
    }
    return linearize(position, shape);
  }

private:
  SmallVector<int64_t> shape, dims, sliceSizes;
};
} // namespace

/// The shape of all slices side by side: that of the coordinates without their last dimension, then
/// that of a slice.
static SmallVector<int64_t> getSlicesShape(const ReferenceTensor &coordinates,
                                           const CoordinateAccess &access, int64_t rank) {
  SmallVector<int64_t> shape(coordinates.getShape().drop_back());
  llvm::append_range(shape, access.getSliceShape(rank - static_cast<int64_t>(shape.size())));
  return shape;
}

static LogicalResult gather(tensor::GatherOp op, ReferenceFrame &frame) {
  const ReferenceTensor &source = frame.getTensor(op.getSource());
  const ReferenceTensor &coordinates = frame.getTensor(op.getIndices());
  CoordinateAccess access(source.getShape(), op.getGatherDims());
  SmallVector<int64_t> shape = getSlicesShape(coordinates, access, op.getType().getRank());
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), shape);
  if (failed(result))
    return failure();
  int64_t slices = *countElements(coordinates.getShape().drop_back()), next = 0;
  for (int64_t slice = 0; slice < slices; ++slice)
    for (Points point(access.getSliceSizes()); point.isValid(); point.next()) {
      FailureOr<int64_t> index = access.getIndex(op, coordinates, slice, point.get());
      if (failed(index))
        return failure();
      result->set(next++, source.get(*index));
    }
  return frame.set(op, std::move(*result));
}

static LogicalResult scatter(tensor::ScatterOp op, ReferenceFrame &frame) {
  const ReferenceTensor &source = frame.getTensor(op.getSource());
  const ReferenceTensor &coordinates = frame.getTensor(op.getIndices());
  ReferenceTensor result = frame.getTensor(op.getDest());
  CoordinateAccess access(result.getShape(), op.getScatterDims());
  if (failed(frame.checkShape(op, "a source", source,
                              getSlicesShape(coordinates, access, source.getRank()))))
    return failure();
  int64_t slices = *countElements(coordinates.getShape().drop_back()), next = 0;
  for (int64_t slice = 0; slice < slices; ++slice)
    for (Points point(access.getSliceSizes()); point.isValid(); point.next()) {
      FailureOr<int64_t> index = access.getIndex(op, coordinates, slice, point.get());
      if (failed(index))
        return failure();
      result.set(*index, source.get(next++));
    }
  return frame.set(op, std::move(result));
}

void mlir::moec::moe::attachGatherModels(MLIRContext *context) {
  attachEvaluation<tensor::GatherOp>(
      context, [](tensor::GatherOp op, ReferenceFrame &frame) { return gather(op, frame); });
  attachEvaluation<tensor::ScatterOp>(
      context, [](tensor::ScatterOp op, ReferenceFrame &frame) { return scatter(op, frame); });
}
