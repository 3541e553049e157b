//===- ConvertKernelsToNVVM.cpp - kernels as entry points of a GPU ----------------------------===//
//
// An entry point takes a pointer for each binding, then all dynamic dimensions, then scratch where
// the kernel uses it. The workgroup is the number of the block.
//
//===------------------------------------------------------------------------------------------===//

#include "moec/Conversion/Passes.h"

#include "../KernelToX86/KernelFunction.h"
#include "../KernelToX86/MemRefArguments.h"

#include "moec/Dialect/Plan/IR/Plan.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::moec {
#define GEN_PASS_DEF_CONVERTKERNELSTONVVMPASS
#define GEN_PASS_DEF_MARKENTRYPOINTSPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

/// What the runtime has to know to describe `op`'s binding: which it is, its element type and shape,
/// for each dynamic dimension its place among the launch's dimensions, and the box.
static DictionaryAttr describeMap(plan::TensorMapOp op, func::FuncOp kernel) {
  Builder builder(op.getContext());
  auto argument = cast<BlockArgument>(op.getBinding());
  auto type = cast<MemRefType>(argument.getType());
  int64_t dimension = 0;
  for (BlockArgument before : kernel.getArguments().take_front(argument.getArgNumber()))
    dimension += cast<MemRefType>(before.getType()).getNumDynamicDims();
  SmallVector<int64_t> sizes, dimensions;
  for (int64_t size : type.getShape()) {
    bool isDynamic = ShapedType::isDynamic(size);
    sizes.push_back(isDynamic ? 0 : size);
    dimensions.push_back(isDynamic ? dimension++ : -1);
  }
  return builder.getDictionaryAttr({
      builder.getNamedAttr("binding", builder.getI64IntegerAttr(argument.getArgNumber())),
      builder.getNamedAttr("box", op.getBoxAttr()),
      builder.getNamedAttr("dimensions", builder.getDenseI64ArrayAttr(dimensions)),
      builder.getNamedAttr("element", TypeAttr::get(type.getElementType())),
      builder.getNamedAttr("sizes", builder.getDenseI64ArrayAttr(sizes)),
  });
}

/// Descriptions of bindings become arguments behind all others.
static LogicalResult collectMaps(func::FuncOp kernel, SmallVectorImpl<plan::TensorMapOp> &maps) {
  kernel.walk([&](plan::TensorMapOp op) { maps.push_back(op); });
  SmallVector<Attribute> descriptions;
  for (plan::TensorMapOp op : maps) {
    if (!isa<BlockArgument>(op.getBinding()))
      return op.emitOpError("expects an argument of the kernel");
    descriptions.push_back(describeMap(op, kernel));
  }
  if (!maps.empty())
    kernel->setAttr(tensorMapsAttribute, ArrayAttr::get(kernel.getContext(), descriptions));
  return success();
}

static LogicalResult passMaps(func::FuncOp kernel, ArrayRef<plan::TensorMapOp> maps) {
  Builder builder(kernel.getContext());
  constexpr int64_t mapBytes = 128, mapAlignment = 64;
  DictionaryAttr attributes = builder.getDictionaryAttr({
      builder.getNamedAttr(
          LLVM::LLVMDialect::getByValAttrName(),
          TypeAttr::get(LLVM::LLVMArrayType::get(builder.getI8Type(), mapBytes))),
      builder.getNamedAttr(LLVM::LLVMDialect::getAlignAttrName(),
                           builder.getI64IntegerAttr(mapAlignment)),
  });
  for (plan::TensorMapOp op : maps) {
    unsigned index = kernel.getNumArguments();
    if (failed(kernel.insertArgument(index, op.getMap().getType(), attributes, op.getLoc())))
      return failure();
    op.getMap().replaceAllUsesWith(kernel.getArgument(index));
    op.erase();
  }
  return success();
}

namespace {
struct ConvertKernelsToNVVM : moec::impl::ConvertKernelsToNVVMPassBase<ConvertKernelsToNVVM> {
  void runOnOperation() override {
    LLVMTypeConverter converter(&getContext());
    OpBuilder builder(&getContext());
    for (func::FuncOp kernel : getKernels(getOperation())) {
      if (failed(verifyKernelSignature(kernel)))
        return signalPassFailure();
      bool usesScratch = !kernel.getArguments().drop_back().back().use_empty();
      SmallVector<plan::TensorMapOp> maps;
      if (failed(collectMaps(kernel, maps)))
        return signalPassFailure();
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
      if (failed(kernel.eraseArguments(dropped)) || failed(passMaps(kernel, maps)))
        return signalPassFailure();
      kernel->removeAttr(kernelAttribute);
      kernel->removeAttr(tileSizesAttribute);
      if (!kernel->hasAttr(threadsAttribute))
        kernel->setAttr(threadsAttribute, builder.getI64IntegerAttr(1));
      kernel.setPublic();
    }
  }
};

/// The kernel after this one may be brought onto the multiprocessors now; this one must not touch
/// memory before the kernel before it has ended.
void overlapWithNeighbours(LLVM::LLVMFuncOp kernel) {
  OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
  for (auto kind : {NVVM::GridDepActionKind::launch_dependents, NVVM::GridDepActionKind::wait})
    NVVM::GriddepcontrolOp::create(builder, kernel.getLoc(), kind);
  kernel->setAttr(overlapAttribute, builder.getUnitAttr());
}

struct MarkEntryPoints : moec::impl::MarkEntryPointsPassBase<MarkEntryPoints> {
  void runOnOperation() override {
    Builder builder(&getContext());
    FailureOr<TargetDescription> target = TargetDescription::get(getOperation());
    if (failed(target))
      return signalPassFailure();
    for (auto function : getOperation().getOps<LLVM::LLVMFuncOp>()) {
      auto threads = function->getAttrOfType<IntegerAttr>(threadsAttribute);
      if (!threads)
        continue;
      function->removeAttr(threadsAttribute);
      // Their code asks for drivers that record such launches as graphs, too.
      if (target->isArchitectureSpecific() || target->computeCapability >= 100)
        overlapWithNeighbours(function);
      function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), builder.getUnitAttr());
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (function.getArgAttr(i, LLVM::LLVMDialect::getByValAttrName()))
          function.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(),
                              builder.getUnitAttr());
      // One block at a time on a multiprocessor, where registers move between warpgroups.
      if (function->hasAttr(tensorMapsAttribute))
        function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), builder.getI32IntegerAttr(1));
      if (auto blocks = function->getAttrOfType<IntegerAttr>(clusterAttribute)) {
        function->removeAttr(clusterAttribute);
        function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                          builder.getDenseI32ArrayAttr({int32_t(blocks.getInt()), 1, 1}));
      }
      function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                        builder.getDenseI32ArrayAttr({int32_t(threads.getInt()), 1, 1}));
    }
  }
};
} // namespace
