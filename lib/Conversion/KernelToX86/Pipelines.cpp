//===- Pipelines.cpp - phases kernel and target -----------------------------------------------===//

#include "moec/Conversion/CompileKernels.h"
#include "moec/Conversion/Passes.h"

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

void mlir::moec::buildTensorKernelPipeline(OpPassManager &pm) {
  pm.addPass(createExpandStrategiesPass());
  pm.nest<func::FuncOp>().addPass(createConvertMoEToLinalgPass());
  pm.addPass(createVerifyDecomposedPass());
  pm.addPass(createFuseKernelsPass());
  pm.addPass(createDistributeKernelsPass());
  OpPassManager &tensors = pm.nest<func::FuncOp>();
  tensors.addPass(createCanonicalizerPass());
  tensors.addPass(createCSEPass());
}

void mlir::moec::buildKernelPipeline(OpPassManager &pm) {
  buildTensorKernelPipeline(pm);
  pm.addPass(createSplitReductionsPass());
  OpPassManager &rows = pm.nest<func::FuncOp>();
  rows.addPass(createCanonicalizerPass());
  rows.addPass(createCSEPass());
  rows.addPass(bufferization::createEmptyTensorEliminationPass());
  pm.addPass(bufferization::createOneShotBufferizePass());
  pm.nest<func::FuncOp>().addPass(createCanonicalizerPass());
  pm.addPass(createPlaceTemporariesPass());
  pm.addPass(createVectorizeKernelsPass());
  OpPassManager &buffers = pm.nest<func::FuncOp>();
  buffers.addPass(createConvertLinalgToLoopsPass());
  buffers.addPass(createCanonicalizerPass());
  buffers.addPass(createCSEPass());
  pm.addPass(createVerifyKernelsPass());
}

void mlir::moec::buildLoopsToControlFlowPipeline(OpPassManager &pm) {
  pm.addPass(createExpandMathPass());
  pm.addPass(createLegalizeFloatsPass());
  OpPassManager &functions = pm.nest<func::FuncOp>();
  functions.addPass(vector::createLowerVectorMultiReductionPass(
      vector::VectorMultiReductionLowering::InnerReduction));
  functions.addPass(createConvertVectorToSCFPass(VectorTransferToSCFOptions().enableFullUnroll()));
  functions.addPass(memref::createFoldMemRefAliasOpsPass());
  functions.addPass(memref::createExpandStridedMetadataPass());
  functions.addPass(createLowerAffinePass());
  functions.addPass(createCanonicalizerPass());
  functions.addPass(createCSEPass());
  functions.addPass(createSCFToControlFlowPass());
  ConvertVectorToLLVMPassOptions vectorOptions;
  vectorOptions.reassociateFPReductions = true;
  functions.addPass(createConvertVectorToLLVMPass(vectorOptions));
}

void mlir::moec::buildTargetPipeline(OpPassManager &pm) {
  buildLoopsToControlFlowPipeline(pm);
  pm.addPass(createConvertKernelsToABIPass());
  pm.addPass(createConvertToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createVerifyTargetPass());
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
