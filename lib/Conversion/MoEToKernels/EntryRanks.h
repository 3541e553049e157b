//===- EntryRanks.h - the largest scores among many, by ranks ---------------------------------===//
//
// A rank is a 32-bit integer in the order of the score that it stands for.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_ENTRYRANKS_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_ENTRYRANKS_H

#include "CodeBuilder.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

/// The rank of an f32; NaN has that of minus infinity, both zeros have one.
Value buildEntryRank(CodeBuilder &code, Value score);

/// The largest rank that at least `wanted` (i32) ranks are not below, one bit after the other.
/// `countFrom(rank)` counts those that are not below `rank`; there are at least `wanted` in all.
Value buildLowestChosenRank(CodeBuilder &code, Value wanted,
                            function_ref<Value(Value rank)> countFrom);

/// How many entries a block table of so many blocks has room for, in a kernel.
Value countEntryRanks(CodeBuilder &code, Value tableBlocks, moe::SelectEntriesOp op);

/// `fixed` bytes and `copies` ranks for each entry that the op's block table has room for.
OpFoldResult countEntryRankBytes(OpBuilder &builder, moe::SelectEntriesOp op, int64_t fixed,
                                 int64_t copies);

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_ENTRYRANKS_H
