#include "EntryRows.h"

using namespace mlir;
using namespace mlir::moec;

EntryRows::Place EntryRows::find(CodeBuilder &code, Value sequence, Value position) const {
  Value capacity = code.mul(code.dim(blockTable, 1), type.getBlock());
  Value isListed = code.both(code.isWithin(position, capacity),
                             code.isWithin(sequence, code.dim(blockTable, 0)));
  Value block = code.choose(
      isListed, {code.getIndexType()},
      [&]() -> SmallVector<Value> {
        return {code.loadIndex(blockTable, {sequence, code.divide(position, type.getBlock())})};
      },
      [&]() -> SmallVector<Value> { return {code.index(-1)}; })[0];
  // Values come behind the keys.
  int64_t keys = type.getBlock() * type.getKeyDim();
  Value row = code.mul(code.remainder(position, type.getBlock()), type.getValueDim());
  return {code.isWithin(block, code.dim(memory, 0)), block, code.add(row, keys)};
}
