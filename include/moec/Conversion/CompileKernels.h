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

/// Compiles the module of phase `target` to the bytes of one shared object that exports the kernel query symbol. The same
/// module gives the same bytes. Problems are reported at the module's location.
FailureOr<std::string> compileToSharedObject(ModuleOp module, const TargetDescription &target);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_COMPILEKERNELS_H
