//===- DeduplicateKernels.cpp - layers that do the same share one kernel ----------------------===//

#include "moec/Dialect/Plan/IR/Plan.h"
#include "moec/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/OperationSupport.h"

namespace mlir::moec {
#define GEN_PASS_DEF_DEDUPLICATEKERNELS
#include "moec/Transforms/Passes.h.inc"

namespace {

/// The text of a kernel without its name: equal kernels have equal texts.
std::string getText(func::FuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel.getFunctionType().print(stream);
  for (NamedAttribute attribute : kernel->getDiscardableAttrs())
    stream << attribute.getName() << attribute.getValue();
  // Names of values are those of this kernel: without a state of its own the printer would number the
  // values of the whole module, once for each kernel.
  AsmState names(kernel);
  kernel.getBody().front().print(stream, names);
  return text;
}

struct DeduplicateKernelsPass : impl::DeduplicateKernelsBase<DeduplicateKernelsPass> {
  void runOnOperation() override {
    llvm::StringMap<func::FuncOp> known;
    llvm::StringMap<StringRef> replacements;
    SmallVector<func::FuncOp> copies;
    for (auto kernel : getOperation().getOps<func::FuncOp>()) {
      if (!kernel->hasAttr("plan.kernel"))
        continue;
      auto [entry, isNew] = known.try_emplace(getText(kernel), kernel);
      if (isNew)
        continue;
      replacements[kernel.getName()] = entry->second.getName();
      copies.push_back(kernel);
    }
    getOperation().walk([&](plan::LaunchOp launch) {
      auto replacement = replacements.find(launch.getKernel());
      if (replacement != replacements.end())
        launch.setKernel(replacement->second);
    });
    for (func::FuncOp copy : copies)
      copy.erase();
    removed += copies.size();
  }
};

} // namespace
} // namespace mlir::moec
