//===- PagedCache.h - where keys and values lie on a GPU --------------------------------------===//
//
// A block of the pool holds, for each head, its tokens' keys one after the other, then the same of
// values: a warp that reads a key or a value reads neighbouring elements. A shared cache has no values
// apart from its keys.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_PAGEDCACHE_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_PAGEDCACHE_H

#include "../CodeBuilder.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

class PagedCache {
public:
  PagedCache(moe::CacheType type, Value memory, Value blockTable)
      : type(type), memory(memory), blockTable(blockTable) {}

  /// Where a token of a sequence lies, when `known`: a wrong table leads nowhere.
  struct Place {
    Value known, block, slot;
  };
  Place find(CodeBuilder &code, Value sequence, Value position) const;

  /// Index within its block of element `i` of a key or a value.
  Value getKeyIndex(CodeBuilder &code, Value head, Value slot, Value i) const;
  Value getValueIndex(CodeBuilder &code, Value head, Value slot, Value i) const;

  Value getMemory() const { return memory; }

private:
  moe::CacheType type;
  Value memory, blockTable;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_PAGEDCACHE_H
