//===- Pipelines.cpp - phases kernel and target for GPUs --------------------------------------===//

#include "moec/Conversion/CompileKernels.h"
#include "moec/Conversion/Passes.h"

#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Vector/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::moec;

void mlir::moec::buildCUDAKernelPipeline(OpPassManager &pm) {
  buildTensorKernelPipeline(pm);
  OpPassManager &tensors = pm.nest<func::FuncOp>();
  tensors.addPass(bufferization::createEmptyTensorEliminationPass());
  pm.addPass(bufferization::createOneShotBufferizePass());
  pm.nest<func::FuncOp>().addPass(createCanonicalizerPass());
  pm.addPass(createDistributeOverThreadsPass());
  pm.addPass(createShareTemporariesPass());
  OpPassManager &buffers = pm.nest<func::FuncOp>();
  buffers.addPass(createCanonicalizerPass());
  buffers.addPass(createCSEPass());
  pm.addPass(createVerifyKernelsPass());
}

void mlir::moec::buildCUDATargetPipeline(OpPassManager &pm) {
  buildLoopsToControlFlowPipeline(pm);
  pm.addPass(createConvertKernelsToNVVMPass());
  pm.addPass(createConvertNVVMToLLVMPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createMarkEntryPointsPass());
  pm.addPass(createVerifyTargetPass());
}

void mlir::moec::registerCUDAKernelPipelines() {
  PassPipelineRegistration<>("moec-cuda-kernel-pipeline",
                             "phase kernel for GPUs: kernel functions to scf, memref and nvvm",
                             [](OpPassManager &pm) { buildCUDAKernelPipeline(pm); });
  PassPipelineRegistration<>("moec-cuda-target-pipeline",
                             "phase target for GPUs: kernel functions to the llvm and nvvm dialects",
                             [](OpPassManager &pm) { buildCUDATargetPipeline(pm); });
}
