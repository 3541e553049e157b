#include "LaneRows.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::moec;

LaneRows::LaneRows(BlockCode &code, moe::CacheType type, Value memory, Value blockTable)
    : code(code), type(type), cache(type, memory, blockTable), layout(LaneLayout::get(type)),
      group(code.divide(code.thread(), layout.lanes)),
      firstOfLane(code.mul(code.remainder(code.lane(), layout.lanes), layout.width)) {}

int64_t LaneRows::countGroups() const { return code.getThreads() / layout.lanes; }

Value LaneRows::getElement(int64_t part) const {
  return code.add(firstOfLane, part * layout.getPartSize());
}

SmallVector<Value> LaneRows::loadRow(PagedCache::Place place, int64_t size,
                                     function_ref<Value(Value i)> getIndex) const {
  SmallVector<Value> parts;
  VectorType vector = code.floatVector(layout.width);
  for (int64_t part = 0; part < layout.countParts(size); ++part) {
    Value i = getElement(part);
    Value isThere = place.known;
    if ((part + 1) * layout.getPartSize() > size)
      isThere = code.both(isThere, code.isWithin(i, code.index(size)));
    parts.push_back(code.choose(
        isThere, {vector},
        [&]() -> SmallVector<Value> {
          return {loadWide({place.block, getIndex(i)})};
        },
        [&]() -> SmallVector<Value> { return {code.floatSplat(0, layout.width)}; })[0]);
  }
  return parts;
}

/// `width` elements of the cache in one access.
Value LaneRows::loadWide(ValueRange place) const {
  Type element = type.getElement();
  auto vector = VectorType::get({layout.width}, element);
  llvm::MaybeAlign alignment(
      std::min<int64_t>(layout.width * element.getIntOrFloatBitWidth() / 8, 16));
  Value loaded = vector::LoadOp::create(code, code.getLoc(), vector, cache.getMemory(), place,
                                        /*nontemporal=*/false, alignment);
  if (element.isF32())
    return loaded;
  return arith::ExtFOp::create(code, code.getLoc(), code.floatVector(layout.width), loaded);
}

Value LaneRows::loadPart(Value memory, ValueRange prefix, int64_t part, int64_t size) const {
  Value i = getElement(part);
  SmallVector<Value> place(prefix);
  place.push_back(i);
  if ((part + 1) * layout.getPartSize() <= size)
    return code.loadFloats(memory, place, layout.width);
  return code.choose(
      code.isWithin(i, code.index(size)), {code.floatVector(layout.width)},
      [&]() -> SmallVector<Value> { return {code.loadFloats(memory, place, layout.width)}; },
      [&]() -> SmallVector<Value> { return {code.floatSplat(0, layout.width)}; })[0];
}
