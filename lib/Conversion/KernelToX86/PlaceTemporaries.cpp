//===- PlaceTemporaries.cpp - temporaries on the stack ----------------------------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"
#include "TemporaryBytes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::moec {
#define GEN_PASS_DEF_PLACETEMPORARIESPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// The runtime's threads have at least this much stack to spare.
static constexpr int64_t stackBytes = 1 << 20;
static constexpr int64_t alignment = 64;

namespace {
struct PlaceTemporaries : moec::impl::PlaceTemporariesPassBase<PlaceTemporaries> {
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
      FailureOr<int64_t> bytes = boundTemporaryBytes(op, stackBytes, alignment);
      if (failed(bytes))
        return op.emitError()
               << "kernel '" << kernel.getName() << "' needs a temporary " << op.getType()
               << " whose size is not bounded; the ops that it connects cannot be one kernel";
      total += *bytes;
      if (total > stackBytes)
        return op.emitError() << "kernel '" << kernel.getName() << "' needs a temporary "
                              << op.getType() << " and so more than " << stackBytes
                              << " bytes of stack; the ops that it connects cannot be one kernel";
      // In the entry block: a loop would take new stack in each iteration.
      rewriter.setInsertionPointToStart(&kernel.getBody().front());
      IntegerAttr align = rewriter.getI64IntegerAttr(alignment);
      if (op.getType().hasStaticShape() && op.getType().getLayout().isIdentity()) {
        auto stack = memref::AllocaOp::create(rewriter, op.getLoc(), op.getType(), align);
        rewriter.replaceOp(op, stack);
        continue;
      }
      auto bytesType = MemRefType::get({*bytes}, rewriter.getI8Type());
      Value stack = memref::AllocaOp::create(rewriter, op.getLoc(), bytesType, align);
      rewriter.setInsertionPoint(op);
      Value zero = arith::ConstantIndexOp::create(rewriter, op.getLoc(), 0);
      rewriter.replaceOpWithNewOp<memref::ViewOp>(op, op.getType(), stack, zero,
                                                  op.getDynamicSizes());
    }
    kernel.walk([&](memref::DeallocOp op) { rewriter.eraseOp(op); });
    return success();
  }
};
} // namespace
