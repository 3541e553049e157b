// scf, func.call and affine arithmetic on indices.
#include "IterationSpace.h"
#include "Models.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::moec::moe;

static LogicalResult setResults(Operation *op, ReferenceFrame &frame,
                                ArrayRef<ReferenceValue> values) {
  for (auto [result, value] : llvm::zip_equal(op->getResults(), values))
    if (failed(frame.set(result, value)))
      return failure();
  return success();
}

static SmallVector<ReferenceValue> getValues(ReferenceFrame &frame, ValueRange values) {
  return llvm::map_to_vector(values, [&](Value value) { return frame.get(value); });
}

static LogicalResult runIf(scf::IfOp op, ReferenceFrame &frame) {
  Region &region = frame.getInteger(op.getCondition()) ? op.getThenRegion() : op.getElseRegion();
  SmallVector<ReferenceValue> results;
  if (!region.empty() && failed(frame.run(region, {}, results)))
    return failure();
  return setResults(op, frame, results);
}

static LogicalResult runFor(scf::ForOp op, ReferenceFrame &frame) {
  int64_t step = frame.getInteger(op.getStep());
  if (step <= 0)
    return op.emitError() << "while interpreting: a step of " << step;
  SmallVector<ReferenceValue> carried = getValues(frame, op.getInitArgs());
  int64_t last = frame.getInteger(op.getUpperBound());
  for (int64_t i = frame.getInteger(op.getLowerBound()); i < last;) {
    SmallVector<ReferenceValue> arguments = {Scalar::fromInteger(i)};
    llvm::append_range(arguments, carried);
    if (failed(frame.run(op.getRegion(), arguments, carried)))
      return failure();
    if (__builtin_add_overflow(i, step, &i))
      break;
  }
  return setResults(op, frame, carried);
}

static LogicalResult runWhile(scf::WhileOp op, ReferenceFrame &frame) {
  SmallVector<ReferenceValue> carried = getValues(frame, op.getInits());
  while (true) {
    SmallVector<ReferenceValue> before;
    if (failed(frame.run(op.getBefore(), carried, before)))
      return failure();
    ArrayRef<ReferenceValue> forwarded = ArrayRef(before).drop_front();
    if (!before.front().getScalar().integer)
      return setResults(op, frame, forwarded);
    if (failed(frame.run(op.getAfter(), forwarded, carried)))
      return failure();
  }
}

static LogicalResult runCall(func::CallOp op, ReferenceFrame &frame) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, op.getCalleeAttr());
  FailureOr<SmallVector<ReferenceValue>> results =
      frame.getInterpreter().call(callee, getValues(frame, op.getOperands()), frame.getDepth() + 1);
  if (failed(results))
    return failure();
  return setResults(op, frame, *results);
}

/// The results of an op's map at its operands; nothing when it divides by zero.
template <typename Op>
static std::optional<SmallVector<int64_t>> applyMap(Op op, ReferenceFrame &frame) {
  SmallVector<int64_t> operands;
  for (Value operand : op->getOperands())
    operands.push_back(frame.getInteger(operand));
  AffineMap map = op.getMap();
  ArrayRef<int64_t> dims = ArrayRef(operands).take_front(map.getNumDims());
  ArrayRef<int64_t> symbols = ArrayRef(operands).drop_front(map.getNumDims());
  SmallVector<int64_t> results;
  for (AffineExpr expr : map.getResults()) {
    std::optional<int64_t> result = evaluateAffine(expr, dims, symbols);
    if (!result)
      return std::nullopt;
    results.push_back(*result);
  }
  return results;
}

template <typename Op, typename Choose>
static LogicalResult evaluateMap(Op op, ReferenceFrame &frame, Choose choose) {
  std::optional<SmallVector<int64_t>> results = applyMap(op, frame);
  if (!results)
    return op.emitError() << "while interpreting: a division by zero";
  return frame.set(op, Scalar::fromInteger(choose(*results)));
}

void mlir::moec::moe::registerControlFlowModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, scf::SCFDialect *) {
    attachEvaluation<scf::IfOp>(
        context, [](scf::IfOp op, ReferenceFrame &frame) { return runIf(op, frame); });
    attachEvaluation<scf::ForOp>(
        context, [](scf::ForOp op, ReferenceFrame &frame) { return runFor(op, frame); });
    attachEvaluation<scf::WhileOp>(
        context, [](scf::WhileOp op, ReferenceFrame &frame) { return runWhile(op, frame); });
  });
  registry.addExtension(+[](MLIRContext *context, func::FuncDialect *) {
    attachEvaluation<func::CallOp>(
        context, [](func::CallOp op, ReferenceFrame &frame) { return runCall(op, frame); });
  });
  registry.addExtension(+[](MLIRContext *context, affine::AffineDialect *) {
    using Results = ArrayRef<int64_t>;
    attachEvaluation<affine::AffineApplyOp>(
        context, [](affine::AffineApplyOp op, ReferenceFrame &frame) {
          return evaluateMap(op, frame, [](Results results) { return results.front(); });
        });
    attachEvaluation<affine::AffineMinOp>(context, [](affine::AffineMinOp op,
                                                      ReferenceFrame &frame) {
      return evaluateMap(op, frame, [](Results results) { return *llvm::min_element(results); });
    });
    attachEvaluation<affine::AffineMaxOp>(context, [](affine::AffineMaxOp op,
                                                      ReferenceFrame &frame) {
      return evaluateMap(op, frame, [](Results results) { return *llvm::max_element(results); });
    });
  });
}
