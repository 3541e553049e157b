//===- ExpandStrategies.cpp - kernels that strategies build -----------------------------------===//

#include "moec/Conversion/KernelStrategy.h"
#include "moec/Conversion/Passes.h"
#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Dialect/Plan/IR/Plan.h"

#include "KernelFunction.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::moec {
#define GEN_PASS_DEF_EXPANDSTRATEGIESPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// The memref behind an operand: what a to_tensor or a cast of the function's argument was made
/// from, or a part of it where the operand is a slice.
static Value findStorage(OpBuilder &builder, Value value) {
  if (auto toTensor = value.getDefiningOp<bufferization::ToTensorOp>())
    return toTensor.getBuffer();
  if (auto cast = value.getDefiningOp<UnrealizedConversionCastOp>())
    if (cast.getNumOperands() == 1 && isa<MemRefType>(cast.getOperand(0).getType()))
      return cast.getOperand(0);
  if (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>()) {
    Value source = findStorage(builder, slice.getSource());
    if (!source)
      return {};
    return memref::SubViewOp::create(builder, value.getLoc(), source, slice.getMixedOffsets(),
                                     slice.getMixedSizes(), slice.getMixedStrides());
  }
  if (auto expand = value.getDefiningOp<tensor::ExpandShapeOp>()) {
    Value source = findStorage(builder, expand.getSrc());
    if (!source)
      return {};
    FailureOr<MemRefType> type = memref::ExpandShapeOp::computeExpandedType(
        cast<MemRefType>(source.getType()), expand.getResultType().getShape(),
        expand.getReassociationIndices());
    if (failed(type))
      return {};
    return memref::ExpandShapeOp::create(builder, value.getLoc(), *type, source,
                                         expand.getReassociationIndices(),
                                         expand.getMixedOutputShape());
  }
  return isa<MemRefType>(value.getType()) ? value : Value();
}

/// The memref that a result is written to.
static Value findDestination(Value result) {
  for (Operation *user : result.getUsers()) {
    if (auto materialize = dyn_cast<bufferization::MaterializeInDestinationOp>(user))
      return materialize.getDest();
    if (auto store = dyn_cast<plan::StoreOp>(user))
      return store.getBinding(); // a value in a layout
  }
  return {};
}

static LogicalResult expand(func::FuncOp kernel, Operation *op, const TargetDescription &target) {
  StringRef name = op->getAttrOfType<StringAttr>("strategy").getValue();
  const KernelStrategy *strategy = findKernelStrategy(name);
  if (!strategy)
    return op->emitError() << "kernel '" << kernel.getName() << "' names the unknown strategy '"
                           << name << "'";
  if (strategy->getOpName() != op->getName().getStringRef() || !strategy->supports(op, target))
    return op->emitError() << "strategy '" << name << "' cannot build this '" << op->getName()
                           << "' for " << target.name;

  Operation *terminator = kernel.getBody().back().getTerminator();
  OpBuilder builder(terminator);
  SmallVector<Value> operands, results;
  SmallVector<Value> sources;
  for (Value operand : op->getOperands()) {
    // A block tensor of a checkpoint is two arguments: codes and scales.
    if (auto blocks = operand.getDefiningOp<moe::AssembleBlocksOp>())
      sources.append({blocks.getCodes(), blocks.getScales()});
    else
      sources.push_back(operand);
  }
  for (auto [index, operand] : llvm::enumerate(sources)) {
    Value storage = findStorage(builder, operand);
    if (!storage)
      return op->emitError() << "operand " << index
                             << " of a strategy's op must be an argument of kernel '"
                             << kernel.getName() << "'";
    operands.push_back(storage);
  }
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    Value destination = findDestination(result);
    if (!destination)
      return op->emitError() << "result " << index
                             << " of a strategy's op must be written to an argument of kernel '"
                             << kernel.getName() << "'";
    results.push_back(destination);
  }

  auto arguments = kernel.getArguments();
  strategy->build(builder, op, operands, results, arguments.drop_back().back(), arguments.back(),
                  target);

  // What remains of the tensor world hangs on the op: uses first.
  SmallVector<Operation *> dead;
  for (Operation &other : kernel.getBody().front())
    if (llvm::any_of(other.getOperandTypes(), [](Type type) { return isTensorLike(type); }) ||
        llvm::any_of(other.getResultTypes(), [](Type type) { return isTensorLike(type); }) ||
        &other == op)
      dead.push_back(&other);
  for (Operation *other : llvm::reverse(dead))
    other->erase();
  return success();
}

namespace {
struct ExpandStrategies : moec::impl::ExpandStrategiesPassBase<ExpandStrategies> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<TargetDescription> target = TargetDescription::get(module);
    if (failed(target))
      return signalPassFailure();
    for (func::FuncOp kernel : getKernels(module)) {
      SmallVector<Operation *> ops;
      kernel.walk([&](Operation *op) {
        if (op->hasAttrOfType<StringAttr>("strategy"))
          ops.push_back(op);
      });
      if (ops.empty())
        continue;
      if (ops.size() > 1) {
        kernel.emitError() << "kernel '" << kernel.getName() << "' has " << ops.size()
                           << " ops with a strategy; expected one";
        signalPassFailure();
        continue;
      }
      if (failed(expand(kernel, ops.front(), *target)))
        signalPassFailure();
      ++numExpanded;
    }
  }
};
} // namespace
