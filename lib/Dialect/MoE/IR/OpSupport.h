// Checks and small helpers that the ops' verifiers share.
#ifndef MOEC_LIB_DIALECT_MOE_IR_OPSUPPORT_H
#define MOEC_LIB_DIALECT_MOE_IR_OPSUPPORT_H

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec::moe {

/// Whether two sizes can be equal: they are, or one is dynamic.
inline bool compatible(int64_t a, int64_t b) {
  return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b);
}

/// Checks that `value` (nothing is checked when it is null) has the shape `expected`, where dynamic
/// sizes match anything.
LogicalResult checkShape(Operation *op, StringRef what, Value value, ArrayRef<int64_t> expected);

/// Checks that positions, offsets and slots of one step agree in their sizes.
LogicalResult checkStepSequences(Operation *op, int64_t tokens, Value positions, Value offsets,
                                 Value slots);

/// Checks that a state is of slots of `shape` and `element`.
LogicalResult checkState(Operation *op, StateType state, Type element, ArrayRef<int64_t> shape);

/// The dimensions of `value` as attributes where static and tensor.dim ops where dynamic.
SmallVector<OpFoldResult> getMixedDims(OpBuilder &builder, Location loc, Value value);

/// Reifies a result that has the shape of `like`.
LogicalResult reifyLike(OpBuilder &builder, Operation *op, Value like,
                        ReifiedRankedShapedTypeDims &shapes);

/// Reifies a [rows of `like`, static size of the result] result.
LogicalResult reifyRows(OpBuilder &builder, Operation *op, Value like,
                        ReifiedRankedShapedTypeDims &shapes);

} // namespace mlir::moec::moe

#endif // MOEC_LIB_DIALECT_MOE_IR_OPSUPPORT_H
