//===- KernelFunction.h - the shape of a kernel function --------------------------------------===//
//
// A kernel function has one memref for each binding, inputs first, then `scratch: memref<?xi8>` and
// `workgroup: index`.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_KERNELTOX86_KERNELFUNCTION_H
#define MOEC_CONVERSION_KERNELTOX86_KERNELFUNCTION_H

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::moec {

inline constexpr llvm::StringLiteral kernelAttribute = "plan.kernel";
inline constexpr llvm::StringLiteral tileSizesAttribute = "plan.tile_sizes";
inline constexpr llvm::StringLiteral threadsAttribute = "plan.threads";
/// How many blocks of a GPU form a cluster.
inline constexpr llvm::StringLiteral clusterAttribute = "plan.cluster";
inline constexpr llvm::StringLiteral tensorMapsAttribute = "plan.tensor_maps";
/// The kernel may begin before the one before it has ended: it waits itself.
inline constexpr llvm::StringLiteral overlapAttribute = "plan.overlap";

/// The kernel functions of `module`, in order.
inline SmallVector<func::FuncOp> getKernels(ModuleOp module) {
  SmallVector<func::FuncOp> kernels;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(kernelAttribute) && !function.isExternal())
      kernels.push_back(function);
  return kernels;
}

/// A value type of the phases before bufferisation.
inline bool isTensorLike(Type type) {
  return isa<TensorType, moe::BlockTensorType, moe::CacheType, moe::StateType>(type);
}

/// Checks the arguments of a kernel function.
LogicalResult verifyKernelSignature(func::FuncOp kernel);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_KERNELTOX86_KERNELFUNCTION_H
