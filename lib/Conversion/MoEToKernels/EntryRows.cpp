#include "EntryRows.h"

using namespace mlir;
using namespace mlir::moec;

EntryRows::Place EntryRows::find(CodeBuilder &code, Value sequence, Value position) const {
  CacheRows::Place place = rows.find(code, sequence, position);
  // Values come behind the keys.
  int64_t keys = type.getBlock() * type.getKeyDim();
  return {place.known, place.block, code.add(code.mul(place.slot, type.getValueDim()), keys)};
}
