//===- VerifyKernels.cpp - what phase kernel leaves
//--------------------------------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"

#include "moec/Dialect/Plan/IR/Plan.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

namespace mlir::moec {
#define GEN_PASS_DEF_VERIFYKERNELSPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

namespace {
struct VerifyKernels : moec::impl::VerifyKernelsPassBase<VerifyKernels> {
  void runOnOperation() override {
    for (func::FuncOp kernel : getKernels(getOperation())) {
      if (failed(verifyKernelSignature(kernel)))
        signalPassFailure();
      // An unsupported op brings its neighbours with it: its own name is what helps, once a kernel.
      Operation *unsupported = nullptr, *neighbour = nullptr;
      kernel.walk([&](Operation *op) {
        if (isa<func::FuncOp, func::ReturnOp, plan::TensorMapOp>(op))
          return;
        if (isa<memref::AllocOp, memref::CopyOp>(op) ||
            !isa<affine::AffineDialect, amx::AMXDialect, arith::ArithDialect, LLVM::LLVMDialect,
                 math::MathDialect, memref::MemRefDialect, NVVM::NVVMDialect, scf::SCFDialect,
                 ub::UBDialect, vector::VectorDialect>(op->getDialect())) {
          bool isNeighbour = isa<bufferization::BufferizationDialect, linalg::LinalgDialect,
                                 tensor::TensorDialect>(op->getDialect());
          Operation *&found = isNeighbour ? neighbour : unsupported;
          if (!found)
            found = op;
        }
      });
      if (Operation *op = unsupported ? unsupported : neighbour) {
        op->emitError() << "'" << op->getName() << "' in kernel '" << kernel.getName()
                        << "' has no code: it has neither a strategy nor a decomposition "
                           "to linalg for these types";
        signalPassFailure();
      }
    }
  }
};
} // namespace
