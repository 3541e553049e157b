#include "CacheRows.h"

using namespace mlir;
using namespace mlir::moec;

CacheRows::Place CacheRows::find(CodeBuilder &code, Value sequence, Value position) const {
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

void CacheRows::copy(CodeBuilder &code, Value block, Value first, int64_t size, Value rows,
                     Value row) const {
  code.panels(size, 16, [&](Value i, int64_t width) {
    code.storeFloats(code.loadFloats(memory, {block, code.add(first, i)}, width), rows, {row, i});
  });
}

void CacheRows::copyKey(CodeBuilder &code, Place place, Value head, Value rows, Value row) const {
  int64_t dim = type.getKeyDim(), size = type.getBlock();
  if (type.isShared()) {
    Value first = code.mul(code.add(code.mul(head, size), place.slot), dim);
    copy(code, place.block, first, dim, rows, row);
    return;
  }
  // Transposed: neighbouring elements are `size` apart.
  Value first = code.add(code.mul(head, dim * size), place.slot);
  code.loop(0, dim, 1, [&](Value i) {
    Value element = code.loadFloat(memory, {place.block, code.add(first, code.mul(i, size))});
    code.storeFloat(element, rows, {row, i});
  });
}

void CacheRows::copyValue(CodeBuilder &code, Place place, Value head, Value rows, Value row) const {
  int64_t keys = type.getKvHeads() * type.getKeyDim() * type.getBlock();
  Value slot = code.add(code.mul(head, type.getBlock()), place.slot);
  copy(code, place.block, code.add(code.mul(slot, type.getValueDim()), keys), type.getValueDim(),
       rows, row);
}

Value CacheRows::loadSharedKey(CodeBuilder &code, Place place, Value head, Value i) const {
  Value slot = code.add(code.mul(head, type.getBlock()), place.slot);
  return code.loadFloat(memory, {place.block, code.add(code.mul(slot, type.getKeyDim()), i)});
}
