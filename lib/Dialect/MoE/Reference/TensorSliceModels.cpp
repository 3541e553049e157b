// tensor: slices, concatenation, padding.
#include "IterationSpace.h"
#include "Models.h"
#include "TensorModels.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec::moe;

namespace {
/// A strided part of a tensor.
struct Slice {
  SmallVector<int64_t> offsets, sizes, strides;

  template <typename Op>
  Slice(Op op, ReferenceFrame &frame)
      : offsets(frame.getIntegers(op.getMixedOffsets())),
        sizes(frame.getIntegers(op.getMixedSizes())),
        strides(frame.getIntegers(op.getMixedStrides())) {}

  LogicalResult check(Operation *op, ArrayRef<int64_t> shape) const {
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      int64_t first = offsets[dim], last = 0;
      bool fits =
          sizes[dim] >= 0 &&
          !__builtin_mul_overflow(std::max<int64_t>(sizes[dim] - 1, 0), strides[dim], &last) &&
          !__builtin_add_overflow(last, first, &last);
      if (fits && sizes[dim] > 0)
        fits = std::min(first, last) >= 0 && std::max(first, last) < shape[dim];
      if (!fits)
        return op->emitError() << "while interpreting: the slice at " << describeShape(offsets)
                               << " of " << describeShape(sizes) << " with strides "
                               << describeShape(strides) << " is out of bounds of "
                               << describeShape(shape);
    }
    return success();
  }

  int64_t getIndex(ArrayRef<int64_t> point, ArrayRef<int64_t> shape) const {
    int64_t index = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      index = index * shape[dim] + offsets[dim] + point[dim] * strides[dim];
    return index;
  }
};
} // namespace

static SmallVector<int64_t> dropDims(ArrayRef<int64_t> sizes, const llvm::SmallBitVector &dropped) {
  SmallVector<int64_t> result;
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (!dropped.test(dim))
      result.push_back(size);
  return result;
}

static LogicalResult extractSlice(tensor::ExtractSliceOp op, ReferenceFrame &frame) {
  const ReferenceTensor &source = frame.getTensor(op.getSource());
  Slice slice(op, frame);
  if (failed(slice.check(op, source.getShape())))
    return failure();
  FailureOr<ReferenceTensor> result =
      frame.allocate(op->getOpResult(0), dropDims(slice.sizes, op.getDroppedDims()));
  if (failed(result))
    return failure();
  int64_t next = 0;
  for (Points point(slice.sizes); point.isValid(); point.next())
    result->set(next++, source.get(slice.getIndex(point.get(), source.getShape())));
  return frame.set(op, std::move(*result));
}

static LogicalResult insertSlice(tensor::InsertSliceOp op, ReferenceFrame &frame) {
  const ReferenceTensor &source = frame.getTensor(op.getSource());
  ReferenceTensor result = frame.getTensor(op.getDest());
  Slice slice(op, frame);
  if (failed(slice.check(op, result.getShape())) ||
      failed(frame.checkShape(op, "a source", source, dropDims(slice.sizes, op.getDroppedDims()))))
    return failure();
  int64_t next = 0;
  for (Points point(slice.sizes); point.isValid(); point.next())
    result.set(slice.getIndex(point.get(), result.getShape()), source.get(next++));
  return frame.set(op, std::move(result));
}

static LogicalResult concatenate(tensor::ConcatOp op, ReferenceFrame &frame) {
  auto dim = static_cast<size_t>(op.getDim());
  SmallVector<int64_t> shape(frame.getTensor(op.getInputs().front()).getShape());
  for (Value input : op.getInputs().drop_front())
    shape[dim] += frame.getTensor(input).getDimSize(dim);
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), shape);
  if (failed(result))
    return failure();
  int64_t offset = 0;
  for (Value input : op.getInputs()) {
    const ReferenceTensor &source = frame.getTensor(input);
    SmallVector<int64_t> expected(shape);
    expected[dim] = source.getDimSize(dim);
    if (failed(frame.checkShape(op, "an input", source, expected)))
      return failure();
    int64_t next = 0;
    for (Points point(source.getShape()); point.isValid(); point.next()) {
      SmallVector<int64_t> target(point.get());
      target[dim] += offset;
      result->set(linearize(target, shape), source.get(next++));
    }
    offset += source.getDimSize(dim);
  }
  return frame.set(op, std::move(*result));
}

static LogicalResult pad(tensor::PadOp op, ReferenceFrame &frame) {
  const ReferenceTensor &source = frame.getTensor(op.getSource());
  SmallVector<int64_t> low = frame.getIntegers(op.getMixedLowPad());
  SmallVector<int64_t> high = frame.getIntegers(op.getMixedHighPad());
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < source.getRank(); ++dim) {
    if (low[dim] < 0 || high[dim] < 0)
      return op.emitError() << "while interpreting: a negative padding";
    shape.push_back(low[dim] + source.getDimSize(dim) + high[dim]);
  }
  FailureOr<ReferenceTensor> result = frame.allocate(op->getOpResult(0), shape);
  if (failed(result))
    return failure();
  int64_t next = 0;
  for (Points point(shape); point.isValid(); point.next()) {
    SmallVector<int64_t> position;
    bool inside = true;
    for (int64_t dim = 0; dim < source.getRank(); ++dim) {
      position.push_back(point[dim] - low[dim]);
      inside &= position.back() >= 0 && position.back() < source.getDimSize(dim);
    }
    if (inside) {
      result->set(next++, source.get(linearize(position, source.getShape())));
      continue;
    }
    SmallVector<ReferenceValue> arguments, results;
    for (int64_t i : point.get())
      arguments.push_back(Scalar::fromInteger(i));
    if (failed(frame.run(op.getRegion(), arguments, results)))
      return failure();
    result->set(next++, results.front().getScalar());
  }
  return frame.set(op, std::move(*result));
}

void mlir::moec::moe::attachSliceModels(MLIRContext *context) {
  attachEvaluation<tensor::ExtractSliceOp>(
      context,
      [](tensor::ExtractSliceOp op, ReferenceFrame &frame) { return extractSlice(op, frame); });
  attachEvaluation<tensor::InsertSliceOp>(
      context,
      [](tensor::InsertSliceOp op, ReferenceFrame &frame) { return insertSlice(op, frame); });
  attachEvaluation<tensor::ConcatOp>(
      context, [](tensor::ConcatOp op, ReferenceFrame &frame) { return concatenate(op, frame); });
  attachEvaluation<tensor::PadOp>(
      context, [](tensor::PadOp op, ReferenceFrame &frame) { return pad(op, frame); });
}
