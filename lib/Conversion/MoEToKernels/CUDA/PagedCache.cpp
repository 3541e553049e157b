#include "PagedCache.h"

using namespace mlir;
using namespace mlir::moec;

PagedCache::Place PagedCache::find(CodeBuilder &code, Value sequence, Value position) const {
  Value capacity = code.mul(code.dim(blockTable, 1), type.getBlock());
  Value isListed = code.both(code.isWithin(position, capacity),
                             code.isWithin(sequence, code.dim(blockTable, 0)));
  Value block = code.choose(
      isListed, {code.getIndexType()},
      [&]() -> SmallVector<Value> {
        return {code.loadIndex(blockTable, {sequence, code.divide(position, type.getBlock())})};
      },
      [&]() -> SmallVector<Value> { return {code.index(-1)}; })[0];
  return {code.isWithin(block, code.dim(memory, 0)), block,
          code.remainder(position, type.getBlock())};
}

Value PagedCache::getKeyIndex(CodeBuilder &code, Value head, Value slot, Value i) const {
  Value row = code.add(code.mul(head, type.getBlock()), slot);
  return code.add(code.mul(row, type.getKeyDim()), i);
}

Value PagedCache::getValueIndex(CodeBuilder &code, Value head, Value slot, Value i) const {
  Value row = code.add(code.mul(head, type.getBlock()), slot);
  int64_t keys = type.getKvHeads() * type.getBlock() * type.getKeyDim();
  return code.add(code.add(code.mul(row, type.getValueDim()), i), keys);
}
