//===- VerifyTarget.cpp - what phase target leaves
//---------------------------------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"

#include "moec/Target/TargetDescription.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include "runtime/abi/kernel_abi.h"

namespace mlir::moec {
#define GEN_PASS_DEF_VERIFYTARGETPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

namespace {
struct VerifyTarget : moec::impl::VerifyTargetPassBase<VerifyTarget> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (func::FuncOp kernel : getKernels(module)) {
      kernel.emitError() << "kernel '" << kernel.getName()
                         << "' was not converted to the llvm dialect";
      signalPassFailure();
    }
    for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
      // One of an op's kind is enough to know where to look.
      WalkResult result = function.walk([&](Operation *op) {
        if (isa<LLVM::LLVMDialect, NVVM::NVVMDialect>(op->getDialect()))
          return WalkResult::advance();
        op->emitError() << "'" << op->getName() << "' in '" << function.getName()
                        << "' has no code";
        return WalkResult::interrupt();
      });
      if (result.wasInterrupted())
        signalPassFailure();
    }
    FailureOr<TargetDescription> target = TargetDescription::get(module);
    if (failed(target))
      return signalPassFailure();
    if (target->isCPU() && !module.lookupSymbol<LLVM::LLVMFuncOp>(MOERT_KERNEL_QUERY_NAME)) {
      module.emitError() << "expected the function '" << MOERT_KERNEL_QUERY_NAME << "'";
      signalPassFailure();
    }
  }
};
} // namespace
