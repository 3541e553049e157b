//===- KernelOutline.h - which ops one kernel holds -------------------------------------------===//

#ifndef MOEC_LIB_TRANSFORMS_KERNELOUTLINE_H
#define MOEC_LIB_TRANSFORMS_KERNELOUTLINE_H

#include "moec/Analysis/Cost.h"
#include "moec/Analysis/SymbolicDims.h"
#include "moec/Target/TargetDescription.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::moec {

/// Whether `op` is cloned into every kernel that reads its result rather than computed by a launch:
/// constants, empty tensors, fills with constants, index arithmetic.
bool isFreeInKernels(Operation *op);

/// Whether `op` is a part of a wider tensor that kernels read where it lies: an extract_slice with
/// unit strides, or an expand_shape of one.
bool isSliceInKernels(Operation *op);

/// How a launch is cut and what it needs.
struct KernelSize {
  SmallVector<AffineExpr> workgroups; ///< the least of these
  AffineExpr scratchBytes;
  SmallVector<int64_t>
      tiles; ///< of the first result's leading dimensions; empty: strategies and single workgroups
  int64_t threads = 1;     ///< that run a workgroup together
  int64_t sharedBytes = 0; ///< of dynamic shared memory
};

/// One kernel in the making: `root` and what is cloned beside it.
class KernelOutline {
public:
  static KernelOutline create(Operation *root, SymbolicDims &dims);

  SmallVector<Value> inputs;  ///< values from outside, in the order of the kernel's arguments
  SmallVector<Value> outputs; ///< the root's results

  /// Inputs, then outputs.
  SmallVector<Value> getBindings() const;

  Location getLoc() const;
  /// A short name for profiles: the strategy or the op.
  std::string getLabel() const;

  FailureOr<KernelSize> getSize(SymbolicDims &dims, const TargetDescription &target) const;

  /// The work of the kernel, whose bindings have `bytes` each.
  Cost getCost(SymbolicDims &dims, ArrayRef<AffineExpr> bytes) const {
    return estimateCost(root, dims, getBindings(), bytes);
  }

  /// Builds `func.func @name` with the body on tensors between bindings.
  void buildFunction(OpBuilder &builder, StringRef name, SymbolicDims &dims,
                     const KernelSize &size) const;

private:
  Operation *root = nullptr;
  SmallVector<Operation *> body; ///< in order, the root last
};

} // namespace mlir::moec

#endif // MOEC_LIB_TRANSFORMS_KERNELOUTLINE_H
