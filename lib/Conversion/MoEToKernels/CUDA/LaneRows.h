//===- LaneRows.h - rows of a paged cache, spread over the lanes of a warp --------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_LANEROWS_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_LANEROWS_H

#include "BlockCode.h"
#include "PagedCache.h"

namespace mlir::moec {

/// How a row lies over lanes: `lanes` of them hold it together, `width` neighbours each, and again
/// for each part of a longer row.
struct LaneLayout {
  int64_t lanes, width;

  int64_t getPartSize() const { return lanes * width; }
  int64_t countParts(int64_t size) const { return llvm::divideCeil(size, getPartSize()); }

  /// Eight lanes with whole 16-byte accesses where rows allow it; else the warp, element by
  /// element.
  static LaneLayout get(moe::CacheType type) {
    LaneLayout wide = {8, 8};
    bool fits = type.getKeyDim() % wide.getPartSize() == 0 &&
                type.getValueDim() % wide.getPartSize() == 0 && type.getKeyDim() <= 256 &&
                type.getValueDim() <= 256;
    return fits ? wide : LaneLayout{BlockCode::warpSize, 1};
  }
};

/// Loads this lane's share of rows.
class LaneRows {
public:
  LaneRows(BlockCode &code, moe::CacheType type, Value memory, Value blockTable);

  const PagedCache &getCache() const { return cache; }
  const LaneLayout &getLayout() const { return layout; }
  /// Rows that a block looks at together, one for each group of lanes, and which group this is.
  int64_t countGroups() const;
  Value getGroup() const { return group; }

  /// The first element of this lane's part `part`.
  Value getElement(int64_t part) const;
  /// The parts of a row of `size` elements at index getIndex(i) of the cache; zeros where the place
  /// is unknown or the row has ended.
  SmallVector<Value> loadRow(PagedCache::Place place, int64_t size,
                             function_ref<Value(Value i)> getIndex) const;
  /// Part `part` of a row of `size` elements of another memory, as f32.
  Value loadPart(Value memory, ValueRange prefix, int64_t part, int64_t size) const;

private:
  Value loadWide(ValueRange place) const;

  BlockCode &code;
  moe::CacheType type;
  PagedCache cache;
  LaneLayout layout;
  Value group, firstOfLane;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_LANEROWS_H
