//===- CacheRows.h - single rows of a paged cache ---------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CACHEROWS_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CACHEROWS_H

#include "CodeBuilder.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

/// Where keys and values lie on a CPU.
class CacheRows {
public:
  CacheRows(moe::CacheType type, Value memory, Value blockTable)
      : type(type), memory(memory), blockTable(blockTable) {}

  /// Where a token of a sequence lies, when `known`: a wrong table leads nowhere.
  struct Place {
    Value known, block, slot;
  };
  Place find(CodeBuilder &code, Value sequence, Value position) const;

  /// Copies elements [0, key_dim) or [0, value_dim) of `head` to row `row` of `rows`, f32. A key of
  /// a shared cache begins with its value.
  void copyKey(CodeBuilder &code, Place place, Value head, Value rows, Value row) const;
  void copyValue(CodeBuilder &code, Place place, Value head, Value rows, Value row) const;

  /// Element `i` of a key of a shared cache.
  Value loadSharedKey(CodeBuilder &code, Place place, Value head, Value i) const;

private:
  void copy(CodeBuilder &code, Value block, Value first, int64_t size, Value rows, Value row) const;

  moe::CacheType type;
  Value memory, blockTable;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CACHEROWS_H
