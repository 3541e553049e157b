//===- KernelStrategy.h - how a hot op becomes a kernel ---------------------------------------===//
//
// A strategy builds the MLIR of one workgroup of one op for one kind of target. Phase `opt` chooses a strategy for each op
// (attribute `strategy`) and gives weights the layout that it asks for; phase `plan` asks how many workgroups and how much
// scratch a launch needs; phase `kernel` lets it build the body. Ops without a strategy go through linalg.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_KERNELSTRATEGY_H
#define MOEC_CONVERSION_KERNELSTRATEGY_H

#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Target/TargetDescription.h"

#include "mlir/IR/Builders.h"

namespace mlir::moec {

class KernelStrategy {
public:
  virtual ~KernelStrategy() = default;

  /// A stable name such as "cpu.grouped_linear.amx": it appears in the IR, in profiles and in tests.
  virtual StringRef getName() const = 0;

  /// The op that it builds, for example "moe.linear".
  virtual StringRef getOpName() const = 0;

  /// Whether it can build `op` for `target`. Looks at types and attributes only, never at layouts.
  virtual bool supports(Operation *op, const TargetDescription &target) const = 0;

  /// Among the strategies that support an op the one with the largest benefit is taken.
  virtual int getBenefit(Operation *op, const TargetDescription &target) const = 0;

  /// The layout that the kernel wants for `operand`, a weight; null: as it is. For a block tensor it must not be null.
  virtual moe::LayoutAttr getLayout(Operation *op, OpOperand &operand,
                                    const TargetDescription &target) const {
    return {};
  }

  /// How many workgroups a launch has. May build arith and affine ops over tensor.dim of the op's operands (and constants),
  /// nothing else: the planner turns the result into an expression of the program's symbols.
  virtual OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                                       const TargetDescription &target) const = 0;

  /// How many threads run a workgroup together: those of a block on a GPU.
  virtual int64_t getThreads(Operation *op, const TargetDescription &target) const { return 1; }

  /// How many bytes of dynamic shared memory a block on a GPU needs.
  virtual int64_t getSharedBytes(Operation *op, const TargetDescription &target) const { return 0; }

  /// How many bytes of scratch a thread of a CPU, or a whole launch on a GPU, needs; the same rules.
  virtual OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                         const TargetDescription &target) const {
    return builder.getIndexAttr(0);
  }

  /// Builds one workgroup at the builder's insertion point, from scf, vector, memref, arith, math, affine, amx and llvm ops.
  /// `operands` has a memref for each operand of `op`, of type moe::getStorageType (or, for a cache, memref<?x(elements of
  /// a block)>), `results` one for each result; `op` itself stays untouched and is erased by the caller. `scratch` is
  /// memref<?xi8>, aligned to 64 bytes, private to the thread. Distinct workgroups write distinct bytes.
  virtual void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
                     Value scratch, Value workgroup, const TargetDescription &target) const = 0;
};

/// All strategies of the compiler, in a fixed order.
ArrayRef<const KernelStrategy *> getKernelStrategies();

/// The best strategy for `op`, or null.
const KernelStrategy *selectKernelStrategy(Operation *op, const TargetDescription &target);

/// The strategy called `name`, or null.
const KernelStrategy *findKernelStrategy(StringRef name);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_KERNELSTRATEGY_H
