#include "moec/InitDialects.h"

#include "moec/Conversion/Passes.h"
#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Dialect/Plan/IR/Plan.h"
#include "moec/Transforms/Passes.h"
#include "moec/Transforms/Pipelines.h"
#include "moec/Transforms/Raise/Passes.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void mlir::moec::registerAllDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, amx::AMXDialect, arith::ArithDialect,
                  bufferization::BufferizationDialect, cf::ControlFlowDialect, func::FuncDialect,
                  linalg::LinalgDialect, LLVM::LLVMDialect, NVVM::NVVMDialect, math::MathDialect,
                  memref::MemRefDialect, moe::MoEDialect, plan::PlanDialect, scf::SCFDialect, tensor::TensorDialect,
                  ub::UBDialect, vector::VectorDialect>();
  registerKernelInterfaces(registry);
}

void mlir::moec::registerAllPasses() {
  registerCanonicalizerPass();
  registerCSEPass();
  registerMoecTransformsPasses();
  registerRaisePasses();
  registerPhasePipelines();
  registerMoecConversionPasses();
  registerKernelPipelines();
  registerCUDAKernelPipelines();
}
