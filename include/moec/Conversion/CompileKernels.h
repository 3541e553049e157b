//===- CompileKernels.h - from kernel functions to a shared object ----------------------------===//

#ifndef MOEC_CONVERSION_COMPILEKERNELS_H
#define MOEC_CONVERSION_COMPILEKERNELS_H

#include "moec/Target/TargetDescription.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace mlir::moec {

/// Phase `kernel`: every func.func with the unit attribute `plan.kernel` becomes scf, vector and memref code. Ops with a
/// `strategy` are built by it; everything else is decomposed to linalg, tiled, vectorised and bufferised.
void buildKernelPipeline(OpPassManager &pm);

/// Phase `target`: the kernel functions become functions of the kernel ABI in the llvm dialect.
void buildTargetPipeline(OpPassManager &pm);

/// The same phases for GPUs: threads of a block share the work of a workgroup; functions become entry points in the llvm and
/// nvvm dialects.
void buildCUDAKernelPipeline(OpPassManager &pm);
void buildCUDATargetPipeline(OpPassManager &pm);

/// What the phases of all targets begin with: kernels built by strategies or decomposed to linalg on tensors and cut into
/// workgroups; arithmetic legalised and loops turned into branches.
void buildTensorKernelPipeline(OpPassManager &pm);
void buildLoopsToControlFlowPipeline(OpPassManager &pm);

/// Threads of a block that share the work of a kernel without a strategy.
inline constexpr int64_t genericThreads = 256;

/// Compiles the module of phase `target` to the bytes of one shared object that exports the kernel query symbol. The same
/// module gives the same bytes. Problems are reported at the module's location.
FailureOr<std::string> compileToSharedObject(ModuleOp module, const TargetDescription &target);

/// Compiles the module of a GPU's phase `target` to PTX text. The same module gives the same text.
FailureOr<std::string> compileToPTX(ModuleOp module, const TargetDescription &target);

/// Machine code for the target from its PTX, by the ptxas on the PATH; empty, perhaps with a warning at `loc`, where there is
/// none or it does not know the target.
FailureOr<std::string> assemblePTX(Location loc, StringRef ptx, const TargetDescription &target);

/// The PTX version that a target's code is written in, as a feature of LLVM ("+ptx80").
std::string getPTXVersion(const TargetDescription &target);

/// The oldest driver that accepts the code of a GPU, as cuDriverGetVersion counts: 12070 for CUDA 12.7.
unsigned getDriverVersion(const TargetDescription &target);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_COMPILEKERNELS_H
