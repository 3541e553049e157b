//===- ConvertKernelsToNVVM.cpp - kernels as entry points of a GPU ----------------------------===//
//
// An entry point takes a pointer for each binding, then all dynamic dimensions, then scratch where
// the kernel uses it. The workgroup is the number of the block.
//
//===------------------------------------------------------------------------------------------===//

#include "moec/Conversion/Passes.h"

#include "../KernelToX86/KernelFunction.h"
#include "../KernelToX86/MemRefArguments.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::moec {
#define GEN_PASS_DEF_CONVERTKERNELSTONVVMPASS
#define GEN_PASS_DEF_MARKENTRYPOINTSPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

namespace {
struct ConvertKernelsToNVVM : moec::impl::ConvertKernelsToNVVMPassBase<ConvertKernelsToNVVM> {
  void runOnOperation() override {
    LLVMTypeConverter converter(&getContext());
    OpBuilder builder(&getContext());
    for (func::FuncOp kernel : getKernels(getOperation())) {
      if (failed(verifyKernelSignature(kernel)))
        return signalPassFailure();
      bool usesScratch = !kernel.getArguments().drop_back().back().use_empty();
      flattenSignature(kernel, converter);
      Block &entry = kernel.getBody().front();
      builder.setInsertionPointToStart(&entry);
      BlockArgument workgroup = entry.getArguments().back();
      Value block = NVVM::BlockIdXOp::create(builder, kernel.getLoc(), builder.getI32Type());
      workgroup.replaceAllUsesWith(
          arith::ExtUIOp::create(builder, kernel.getLoc(), builder.getI64Type(), block));
      llvm::BitVector dropped(entry.getNumArguments());
      dropped.set(workgroup.getArgNumber());
      if (!usesScratch) {
        // Its description is not used either.
        BlockArgument scratch = entry.getArgument(workgroup.getArgNumber() - 1);
        Value none = LLVM::ZeroOp::create(builder, kernel.getLoc(), scratch.getType());
        scratch.replaceAllUsesWith(none);
        dropped.set(scratch.getArgNumber());
      }
      if (failed(kernel.eraseArguments(dropped)))
        return signalPassFailure();
      kernel->removeAttr(kernelAttribute);
      kernel->removeAttr(tileSizesAttribute);
      if (!kernel->hasAttr(threadsAttribute))
        kernel->setAttr(threadsAttribute, builder.getI64IntegerAttr(1));
      kernel.setPublic();
    }
  }
};

struct MarkEntryPoints : moec::impl::MarkEntryPointsPassBase<MarkEntryPoints> {
  void runOnOperation() override {
    Builder builder(&getContext());
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      auto threads = function->getAttrOfType<IntegerAttr>(threadsAttribute);
      if (!threads)
        continue;
      function->removeAttr(threadsAttribute);
      function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
      function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                        builder.getDenseI32ArrayAttr({int32_t(threads.getInt()), 1, 1}));
    }
  }
};
} // namespace
