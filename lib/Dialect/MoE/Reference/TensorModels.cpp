// tensor: making tensors, their shapes, single elements.
#include "TensorModels.h"
#include "IterationSpace.h"
#include "Models.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::moec::moe;

/// Row-major index of an element, given by index operands. Emits a diagnostic when it is out of
/// bounds.
static FailureOr<int64_t> findElement(Operation *op, ReferenceFrame &frame, ValueRange indices,
                                      ArrayRef<int64_t> shape) {
  int64_t index = 0;
  for (auto [operand, size] : llvm::zip_equal(indices, shape)) {
    int64_t i = frame.getInteger(operand);
    if (i < 0 || i >= size)
      return op->emitError() << "while interpreting: index " << i
                             << " is out of bounds of a dimension of size " << size;
    index = index * size + i;
  }
  return index;
}

/// The result's shape, its dynamic sizes taken in order.
static SmallVector<int64_t> getShape(RankedTensorType type, ReferenceFrame &frame,
                                     ValueRange dynamicSizes) {
  SmallVector<int64_t> shape(type.getShape());
  auto next = dynamicSizes.begin();
  for (int64_t &size : shape)
    if (ShapedType::isDynamic(size))
      size = frame.getInteger(*next++);
  return shape;
}

static LogicalResult reshape(Operation *op, ReferenceFrame &frame, const ReferenceTensor &source,
                             ArrayRef<int64_t> shape) {
  if (countElements(shape) != source.getSize())
    return op->emitError() << "while interpreting: cannot see the shape "
                           << describeShape(source.getShape()) << " as " << describeShape(shape);
  return frame.set(op->getResult(0), source.reshape(shape));
}

static void attachMaking(MLIRContext *context) {
  attachEvaluation<tensor::EmptyOp>(
      context, [](tensor::EmptyOp op, ReferenceFrame &frame) -> LogicalResult {
        FailureOr<ReferenceTensor> tensor =
            frame.allocate(op->getOpResult(0), getShape(op.getType(), frame, op.getDynamicSizes()));
        if (failed(tensor))
          return failure();
        return frame.set(op, std::move(*tensor));
      });
  attachEvaluation<tensor::SplatOp>(
      context, [](tensor::SplatOp op, ReferenceFrame &frame) -> LogicalResult {
        FailureOr<ReferenceTensor> tensor =
            frame.allocate(op->getOpResult(0), getShape(op.getType(), frame, op.getDynamicSizes()));
        if (failed(tensor))
          return failure();
        for (int64_t i = 0; i < tensor->getSize(); ++i)
          tensor->set(i, frame.getScalar(op.getInput()));
        return frame.set(op, std::move(*tensor));
      });
  attachEvaluation<tensor::FromElementsOp>(
      context, [](tensor::FromElementsOp op, ReferenceFrame &frame) -> LogicalResult {
        FailureOr<ReferenceTensor> tensor =
            frame.allocate(op->getOpResult(0), op.getType().getShape());
        if (failed(tensor))
          return failure();
        for (auto [i, element] : llvm::enumerate(op.getElements()))
          tensor->set(i, frame.getScalar(element));
        return frame.set(op, std::move(*tensor));
      });
  attachEvaluation<tensor::GenerateOp>(
      context, [](tensor::GenerateOp op, ReferenceFrame &frame) -> LogicalResult {
        SmallVector<int64_t> shape =
            getShape(cast<RankedTensorType>(op.getType()), frame, op.getDynamicExtents());
        FailureOr<ReferenceTensor> tensor = frame.allocate(op->getOpResult(0), shape);
        if (failed(tensor))
          return failure();
        for (Points point(shape); point.isValid(); point.next()) {
          SmallVector<ReferenceValue> arguments, results;
          for (int64_t i : point.get())
            arguments.push_back(Scalar::fromInteger(i));
          if (failed(frame.run(op.getBody(), arguments, results)))
            return failure();
          tensor->set(linearize(point.get(), shape), results.front().getScalar());
        }
        return frame.set(op, std::move(*tensor));
      });
}

static void attachShapes(MLIRContext *context) {
  attachEvaluation<tensor::CastOp>(context, [](tensor::CastOp op, ReferenceFrame &frame) {
    return frame.set(op, frame.get(op.getSource()));
  });
  attachEvaluation<tensor::BitcastOp>(context, [](tensor::BitcastOp op, ReferenceFrame &frame) {
    return frame.set(op, frame.getTensor(op.getSource()).bitcast(op.getType().getElementType()));
  });
  attachEvaluation<tensor::DimOp>(
      context, [](tensor::DimOp op, ReferenceFrame &frame) -> LogicalResult {
        const ReferenceTensor &tensor = frame.getTensor(op.getSource());
        int64_t dim = frame.getInteger(op.getIndex());
        if (dim < 0 || dim >= tensor.getRank())
          return op.emitError() << "while interpreting: a tensor of rank " << tensor.getRank()
                                << " has no dimension " << dim;
        return frame.set(op, Scalar::fromInteger(tensor.getDimSize(dim)));
      });
  attachEvaluation<tensor::RankOp>(context, [](tensor::RankOp op, ReferenceFrame &frame) {
    return frame.set(op, Scalar::fromInteger(frame.getTensor(op.getTensor()).getRank()));
  });
  attachEvaluation<tensor::ReshapeOp>(
      context, [](tensor::ReshapeOp op, ReferenceFrame &frame) -> LogicalResult {
        const ReferenceTensor &sizes = frame.getTensor(op.getShape());
        SmallVector<int64_t> shape;
        for (int64_t i = 0; i < sizes.getSize(); ++i)
          shape.push_back(sizes.getInteger(i));
        return reshape(op, frame, frame.getTensor(op.getSource()), shape);
      });
  attachEvaluation<tensor::ExpandShapeOp>(
      context, [](tensor::ExpandShapeOp op, ReferenceFrame &frame) -> LogicalResult {
        return reshape(op, frame, frame.getTensor(op.getSrc()),
                       frame.getIntegers(op.getMixedOutputShape()));
      });
  attachEvaluation<tensor::CollapseShapeOp>(
      context, [](tensor::CollapseShapeOp op, ReferenceFrame &frame) -> LogicalResult {
        const ReferenceTensor &source = frame.getTensor(op.getSrc());
        SmallVector<int64_t> shape;
        for (const ReassociationIndices &group : op.getReassociationIndices()) {
          int64_t size = 1;
          for (int64_t dim : group)
            size *= source.getDimSize(dim);
          shape.push_back(size);
        }
        return reshape(op, frame, source, shape);
      });
}

static void attachElements(MLIRContext *context) {
  attachEvaluation<tensor::ExtractOp>(
      context, [](tensor::ExtractOp op, ReferenceFrame &frame) -> LogicalResult {
        const ReferenceTensor &tensor = frame.getTensor(op.getTensor());
        FailureOr<int64_t> index = findElement(op, frame, op.getIndices(), tensor.getShape());
        if (failed(index))
          return failure();
        return frame.set(op, tensor.get(*index));
      });
  attachEvaluation<tensor::InsertOp>(
      context, [](tensor::InsertOp op, ReferenceFrame &frame) -> LogicalResult {
        ReferenceTensor tensor = frame.getTensor(op.getDest());
        FailureOr<int64_t> index = findElement(op, frame, op.getIndices(), tensor.getShape());
        if (failed(index))
          return failure();
        tensor.set(*index, frame.getScalar(op.getScalar()));
        return frame.set(op, std::move(tensor));
      });
}

void mlir::moec::moe::registerTensorModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    attachMaking(context);
    attachShapes(context);
    attachElements(context);
    attachSliceModels(context);
    attachGatherModels(context);
  });
}
