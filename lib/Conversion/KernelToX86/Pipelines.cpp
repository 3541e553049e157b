//===- Pipelines.cpp - phases kernel and target -----------------------------------------------===//

#include "moec/Conversion/CompileKernels.h"
#include "moec/Conversion/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::moec;

void mlir::moec::buildKernelPipeline(OpPassManager &pm) {
  pm.addPass(createExpandStrategiesPass());
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createConvertElementwiseToLinalgPass());
  functions.addPass(createLinalgElementwiseOpFusionPass());
  functions.addPass(bufferization::createEmptyTensorEliminationPass());
  pm.addPass(bufferization::createOneShotBufferizePass());
  OpPassManager &buffers = pm.nest<func::FuncOp>();
  buffers.addPass(createConvertLinalgToLoopsPass());
  buffers.addPass(createCanonicalizerPass());
  buffers.addPass(createCSEPass());
}

void mlir::moec::buildTargetPipeline(OpPassManager &pm) {
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(createConvertVectorToSCFPass());
  functions.addPass(memref::createExpandStridedMetadataPass());
  functions.addPass(createLowerAffinePass());
  functions.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertKernelsToABIPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

void mlir::moec::registerKernelPipelines() {
  PassPipelineRegistration<>("moec-kernel-pipeline",
                             "phase kernel: kernel functions to vector, scf and memref",
                             [](OpPassManager &pm) { buildKernelPipeline(pm); });
  PassPipelineRegistration<>(
      "moec-target-pipeline",
      "phase target: kernel functions to the llvm dialect and the kernel ABI",
      [](OpPassManager &pm) { buildTargetPipeline(pm); });
}
