//===- EntryRows.h - rows of a cache that are key and value at once ---------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_ENTRYROWS_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_ENTRYROWS_H

#include "CacheRows.h"

namespace mlir::moec {

class EntryRows {
public:
  EntryRows(moe::CacheType type, Value memory, Value blockTable)
      : type(type), memory(memory), rows(type, memory, blockTable) {}

  /// Where the row at a position of a sequence lies, when `known`: a wrong table, or no position at
  /// all, leads nowhere.
  struct Place {
    Value known;
    Value block, start; ///< block of the pool, and the row's first element in it
  };
  Place find(CodeBuilder &code, Value sequence, Value position) const;

  Value getMemory() const { return memory; }

private:
  moe::CacheType type;
  Value memory;
  CacheRows rows;
};

/// How many entries the token at `position` sees, and where entry `entry` lies.
template <typename Op>
Value countVisibleEntries(CodeBuilder &code, Op op, Value position) {
  return code.divide(code.add(position, 1), static_cast<int64_t>(op.getRatio()));
}
template <typename Op>
Value getEntryPosition(CodeBuilder &code, Op op, Value entry) {
  auto stride = static_cast<int64_t>(op.getStride());
  return code.add(code.mul(entry, stride), stride - 1);
}

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_ENTRYROWS_H
