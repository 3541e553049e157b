//===- ShareTemporaries.cpp - temporaries of generic kernels in shared memory -----------------===//

#include "moec/Conversion/Passes.h"

#include "../KernelToX86/KernelFunction.h"
#include "../KernelToX86/TemporaryBytes.h"
#include "../MoEToKernels/CUDA/BlockCode.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::moec {
#define GEN_PASS_DEF_SHARETEMPORARIESPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// What every GPU gives a block without being asked.
static constexpr int64_t sharedBytes = 48 * 1024;
static constexpr int64_t alignment = 16;

namespace {
struct ShareTemporaries : moec::impl::ShareTemporariesPassBase<ShareTemporaries> {
  void runOnOperation() override {
    for (func::FuncOp kernel : getKernels(getOperation()))
      if (failed(place(kernel)))
        signalPassFailure();
  }

  LogicalResult place(func::FuncOp kernel) {
    SmallVector<memref::AllocOp> allocations;
    kernel.walk([&](memref::AllocOp op) { allocations.push_back(op); });
    IRRewriter rewriter(&getContext());
    int64_t total = 0;
    for (memref::AllocOp op : allocations) {
      FailureOr<int64_t> bytes = boundTemporaryBytes(op, sharedBytes, alignment);
      if (failed(bytes))
        return op.emitError()
               << "kernel '" << kernel.getName() << "' needs a temporary " << op.getType()
               << " whose size is not bounded; the ops that it connects cannot be one kernel";
      total += *bytes;
      if (total > sharedBytes)
        return op.emitError() << "kernel '" << kernel.getName() << "' needs a temporary "
                              << op.getType() << " and so more than " << sharedBytes
                              << " bytes of shared memory; the ops that it connects cannot be one "
                                 "kernel";
      rewriter.setInsertionPointToStart(&kernel.getBody().front());
      Value shared = buildSharedMemory(rewriter, op.getLoc(), kernel,
                                       MemRefType::get({*bytes}, rewriter.getI8Type()));
      rewriter.setInsertionPoint(op);
      Value zero = arith::ConstantIndexOp::create(rewriter, op.getLoc(), 0);
      rewriter.replaceOpWithNewOp<memref::ViewOp>(op, op.getType(), shared, zero,
                                                  op.getDynamicSizes());
    }
    kernel.walk([&](memref::DeallocOp op) { rewriter.eraseOp(op); });
    return success();
  }
};
} // namespace
