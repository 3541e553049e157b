// linalg: loops over the iteration space, as the op's indexing maps and its body say.
//
// Where the body adds something to its output argument along a reduction, the sum is kept in double
// precision and rounded once at the end, so that the result does not depend on an order that a
// compiler may choose.
#include "IterationSpace.h"
#include "Models.h"
#include "ScalarProgram.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::moec::moe;

namespace {

/// An operand and its elements as wide numbers.
struct Operand {
  std::vector<Scalar> elements;
  OperandAccess access;
};

class LinalgEvaluation {
public:
  LinalgEvaluation(linalg::LinalgOp op, ReferenceFrame &frame)
      : op(op), body(*op.getBlock()), frame(frame) {}

  LogicalResult run() {
    if (!op.hasPureTensorSemantics())
      return op.emitError() << "while interpreting: expects tensors, not buffers";
    if (failed(findLoops()) || failed(loadOperands()))
      return failure();
    findSums();
    if (!llvm::is_contained(loopSizes, 0)) {
      LogicalResult done = isPlainProduct() ? runProduct() : runBody();
      if (failed(done))
        return failure();
    }
    return storeResults();
  }

private:
  LogicalResult findLoops();
  LogicalResult loadOperands();
  void findSums();
  bool isPlainProduct();
  LogicalResult runProduct();
  LogicalResult runBody();
  LogicalResult runBodyInFrame(ArrayRef<int64_t> point, MutableArrayRef<Scalar> values);
  LogicalResult reportOutOfBounds(size_t operand);
  LogicalResult storeResults();

  linalg::LinalgOp op;
  Block &body;
  ReferenceFrame &frame;
  SmallVector<int64_t> loopSizes;
  std::vector<Operand> operands;
  DenseSet<Operation *> exact; // ops of sums, which are not rounded
};

} // namespace

static const ReferenceTensor *getTensorOrNull(ReferenceFrame &frame, Value value) {
  const ReferenceValue &content = frame.get(value);
  return content.isTensor() ? &content.getTensor() : nullptr;
}

LogicalResult LinalgEvaluation::findLoops() {
  SmallVector<int64_t> sizes;
  for (OpOperand &operand : op->getOpOperands())
    if (const ReferenceTensor *tensor = getTensorOrNull(frame, operand.get()))
      llvm::append_range(sizes, tensor->getShape());
  AffineMap map = op.getShapesToLoopsMap();
  if (!map || map.getNumDims() != sizes.size())
    return op.emitError() << "while interpreting: the sizes of the loops do not follow from the "
                             "shapes of the operands";
  loopSizes = map.compose(sizes);
  for (int64_t size : loopSizes)
    if (size < 0)
      return op.emitError() << "while interpreting: a loop of " << size << " iterations";
  return success();
}

LogicalResult LinalgEvaluation::loadOperands() {
  for (OpOperand &operand : op->getOpOperands()) {
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (const ReferenceTensor *tensor = getTensorOrNull(frame, operand.get()))
      operands.push_back({tensor->getScalars(), {map, tensor->getShape(), loopSizes}});
    else
      operands.push_back({{frame.getScalar(operand.get())}, {map, {}, loopSizes}});
  }
  return success();
}

/// Finds `yield (argument + x)` and `yield (argument + a * b)`.
void LinalgEvaluation::findSums() {
  if (op.getNumReductionLoops() == 0)
    return;
  Operation *yield = body.getTerminator();
  for (auto [i, value] : llvm::enumerate(yield->getOperands())) {
    auto add = value.getDefiningOp<arith::AddFOp>();
    BlockArgument sum = body.getArgument(op.getNumDpsInputs() + i);
    if (!add || !add->hasOneUse() || !sum.hasOneUse() ||
        !llvm::is_contained(add->getOperands(), sum))
      continue;
    exact.insert(add);
    Value term = add.getLhs() == sum ? add.getRhs() : add.getLhs();
    if (auto product = term.getDefiningOp<arith::MulFOp>(); product && product->hasOneUse())
      exact.insert(product);
  }
}

/// The body of a matrix product and nothing else.
bool LinalgEvaluation::isPlainProduct() {
  if (exact.size() != 2 || operands.size() != 3 || body.getNumArguments() != 3 ||
      op.getNumDpsInits() != 1 || op.getNumLoops() == 0)
    return false;
  for (Operation &inner : body.without_terminator()) {
    // Widening is exact, so it may be left out.
    if (exact.contains(&inner) || (isa<arith::ExtFOp>(inner) && inner.hasOneUse()))
      continue;
    return false;
  }
  auto add = cast<arith::AddFOp>(body.getTerminator()->getOperand(0).getDefiningOp());
  Value term = add.getLhs() == body.getArgument(2) ? add.getRhs() : add.getLhs();
  auto product = term.getDefiningOp<arith::MulFOp>();
  auto skipExtension = [](Value value) {
    auto extension = value.getDefiningOp<arith::ExtFOp>();
    return extension ? extension.getIn() : value;
  };
  Value left = skipExtension(product.getLhs()), right = skipExtension(product.getRhs());
  if (left == right || !isa<BlockArgument>(left) || !isa<BlockArgument>(right))
    return false;
  return llvm::all_of(operands,
                      [](const Operand &operand) { return operand.access.getInnerStride(); });
}

LogicalResult LinalgEvaluation::runProduct() {
  // The innermost loop as plain multiplications and additions.
  SmallVector<int64_t> outer(loopSizes);
  outer.back() = 1;
  int64_t inner = loopSizes.back();
  int64_t strides[3];
  for (size_t i = 0; i < 3; ++i)
    strides[i] = *operands[i].access.getInnerStride();
  for (Points point(outer); point.isValid(); point.next()) {
    const Scalar *a = operands[0].elements.data() + operands[0].access.getIndex(point.get());
    const Scalar *b = operands[1].elements.data() + operands[1].access.getIndex(point.get());
    Scalar *c = operands[2].elements.data() + operands[2].access.getIndex(point.get());
    for (int64_t i = 0; i < inner; ++i)
      c[i * strides[2]].real += a[i * strides[0]].real * b[i * strides[1]].real;
  }
  return success();
}

LogicalResult LinalgEvaluation::reportOutOfBounds(size_t operand) {
  return op.emitError() << "while interpreting: the indexing map of operand " << operand
                        << " leads out of bounds";
}

LogicalResult LinalgEvaluation::runBody() {
  std::optional<ScalarProgram> program = ScalarProgram::compile(body, frame, exact);
  unsigned inputs = op.getNumDpsInputs(), outputs = op.getNumDpsInits();
  SmallVector<int64_t> indices(operands.size());
  std::vector<Scalar> values(operands.size());
  for (Points point(loopSizes); point.isValid(); point.next()) {
    for (size_t i = 0; i < operands.size(); ++i) {
      indices[i] = operands[i].access.getIndex(point.get());
      if (indices[i] < 0)
        return reportOutOfBounds(i);
      values[i] = operands[i].elements[indices[i]];
    }
    if (program) {
      llvm::copy(ArrayRef(values).take_front(body.getNumArguments()),
                 program->getArguments().begin());
      if (failed(program->run(point.get())))
        return failure();
      for (unsigned i = 0; i < outputs; ++i)
        values[inputs + i] = program->getResult(i);
    } else if (failed(runBodyInFrame(point.get(), values))) {
      return failure();
    }
    for (unsigned i = 0; i < outputs; ++i)
      operands[inputs + i].elements[indices[inputs + i]] = values[inputs + i];
  }
  return success();
}

/// For bodies with control flow.
LogicalResult LinalgEvaluation::runBodyInFrame(ArrayRef<int64_t> point,
                                               MutableArrayRef<Scalar> values) {
  frame.setIteration(op, point);
  SmallVector<ReferenceValue> arguments, results;
  for (size_t i = 0; i < body.getNumArguments(); ++i)
    arguments.push_back(values[i]);
  if (failed(frame.run(*body.getParent(), arguments, results)))
    return failure();
  for (auto [i, result] : llvm::enumerate(results))
    values[op.getNumDpsInputs() + i] = result.getScalar();
  return success();
}

LogicalResult LinalgEvaluation::storeResults() {
  for (OpResult result : op->getResults()) {
    OpOperand *init = op.getDpsInitOperand(result.getResultNumber());
    ReferenceTensor output = frame.getTensor(init->get());
    const std::vector<Scalar> &elements = operands[init->getOperandNumber()].elements;
    for (int64_t i = 0; i < output.getSize(); ++i)
      output.set(i, elements[i]);
    if (failed(frame.set(result, std::move(output))))
      return failure();
  }
  return success();
}

namespace {
template <typename Op>
struct StructuredModel : ReferenceEvaluationOpInterface::ExternalModel<StructuredModel<Op>, Op> {
  LogicalResult evaluate(Operation *op, ReferenceFrame &frame) const {
    return LinalgEvaluation(cast<linalg::LinalgOp>(op), frame).run();
  }
};
} // namespace

template <typename... Ops>
static void attachStructured(MLIRContext *context) {
  (Ops::template attachInterface<StructuredModel<Ops>>(*context), ...);
}

void mlir::moec::moe::registerLinalgModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    attachStructured<
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
        >(context);
    attachEvaluation<linalg::IndexOp>(context, [](linalg::IndexOp op, ReferenceFrame &frame) {
      ArrayRef<int64_t> point = frame.getIteration(op->getParentOfType<linalg::LinalgOp>());
      return frame.set(op, Scalar::fromInteger(point[op.getDim()]));
    });
  });
}
