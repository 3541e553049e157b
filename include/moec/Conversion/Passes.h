//===- Passes.h - conversions between the phases ----------------------------------------------===//

#ifndef MOEC_CONVERSION_PASSES_H
#define MOEC_CONVERSION_PASSES_H

#include "moec/Conversion/CompileKernels.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
class RewritePatternSet;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace mlir::moec {

#define GEN_PASS_DECL
#include "moec/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "moec/Conversion/Passes.h.inc"

/// External models of upstream interfaces that the phases kernel and target need: tiling,
/// bufferisation, conversion to LLVM.
void registerKernelInterfaces(DialectRegistry &registry);

/// Registers `moec-kernel-pipeline` and `moec-target-pipeline`.
void registerKernelPipelines();

/// Registers `moec-cuda-kernel-pipeline` and `moec-cuda-target-pipeline`.
void registerCUDAKernelPipelines();

} // namespace mlir::moec

#endif // MOEC_CONVERSION_PASSES_H
