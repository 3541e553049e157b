//===- VerifyDecomposed.cpp - moe ops that found no lowering
//-----------------------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"

namespace mlir::moec {
#define GEN_PASS_DEF_VERIFYDECOMPOSEDPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

namespace {
struct VerifyDecomposed : moec::impl::VerifyDecomposedPassBase<VerifyDecomposed> {
  void runOnOperation() override {
    for (func::FuncOp kernel : getKernels(getOperation()))
      kernel.walk([&](Operation *op) {
        if (!isa<moe::MoEDialect>(op->getDialect()))
          return;
        op->emitError() << "'" << op->getName() << "' in kernel '" << kernel.getName()
                        << "' has no code: no strategy was chosen and there is no "
                           "decomposition to linalg for these types";
        signalPassFailure();
      });
  }
};
} // namespace
