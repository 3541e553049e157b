#include "moec/Dialect/Plan/IR/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::moec;
using namespace mlir::moec::plan;

#define GET_OP_CLASSES
#include "moec/Dialect/Plan/IR/PlanOps.cpp.inc"

void PlanDialect::registerOperations() {
  addOperations<
#define GET_OP_LIST
#include "moec/Dialect/Plan/IR/PlanOps.cpp.inc"
      >();
}

SmallVector<Operation *> ProgramOp::getCommands() {
  SmallVector<Operation *> commands;
  for (Operation &op : getBody().front())
    if (isa<LaunchOp, CopyOp>(op))
      commands.push_back(&op);
  return commands;
}

/// Every affine map of `op` is over the program's symbols.
static LogicalResult checkMaps(Operation *op, unsigned symbols) {
  for (NamedAttribute attribute : op->getAttrs()) {
    auto map = dyn_cast<AffineMapAttr>(attribute.getValue());
    if (map && (map.getValue().getNumDims() != 0 || map.getValue().getNumSymbols() != symbols))
      return op->emitOpError() << "expects '" << attribute.getName().getValue()
                               << "' to be a map of no dimensions and " << symbols
                               << " symbols, got " << map;
  }
  return success();
}

LogicalResult ProgramOp::verify() {
  for (Operation &op : getBody().front()) {
    if (!isa<PlanDialect>(op.getDialect()) || isa<ProgramOp>(op))
      return op.emitOpError() << "is not allowed in a plan.program: expects plan ops only";
    if (failed(checkMaps(&op, getSymbols().size())))
      return failure();
  }
  return success();
}

LogicalResult GlobalOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<moe::GlobalOp>(*this, getGlobalAttr()))
    return emitOpError() << "expects a moe.global called " << getGlobalAttr();
  return success();
}

LogicalResult LaunchOp::verify() {
  unsigned bindings = getInputs().size() + getOutputs().size();
  if (getBindingBytes().getNumResults() != bindings)
    return emitOpError() << "expects a size for each of " << bindings << " bindings, got "
                         << getBindingBytes().getNumResults();
  if (getWorkgroups().getNumResults() == 0 || getScratchBytes().getNumResults() != 1)
    return emitOpError() << "expects one number of workgroups and one scratch size";
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<func::FuncOp>(*this, getKernelAttr());
  if (!kernel || !kernel->hasAttr("plan.kernel"))
    return success(); // phase target changes what kernels take
  unsigned bindings = getInputs().size() + getOutputs().size();
  if (kernel.getNumArguments() != bindings + 2)
    return emitOpError() << "expects kernel " << getKernelAttr() << " to take " << bindings
                         << " bindings, scratch and workgroup, got " << kernel.getNumArguments()
                         << " arguments";
  int64_t dynamic = 0;
  for (Type type : kernel.getArgumentTypes().take_front(bindings))
    if (auto memref = dyn_cast<MemRefType>(type))
      dynamic += memref.getNumDynamicDims();
  if (getDimensions().getNumResults() != dynamic)
    return emitOpError() << "expects " << dynamic << " dimensions for " << getKernelAttr()
                         << ", got " << getDimensions().getNumResults();
  return success();
}
