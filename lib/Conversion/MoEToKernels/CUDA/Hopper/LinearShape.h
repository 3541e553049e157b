//===- LinearShape.h - how dense products on Hopper are cut into tiles ------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_LINEARSHAPE_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_LINEARSHAPE_H

#include <cstdint>
#include <vector>

namespace mlir::moec {

/// A tile, and what a slot of the ring holds of it. With 128 rows a warpgroup has 64 of them; with 64
/// the two warpgroups share k.
struct LinearShape {
  static constexpr int64_t depth = 64, bytesOfRow = depth * 2, mostSlots = 16;
  /// Blocks of a launch: one for each multiprocessor of an H100 or H200, in pairs that are clusters.
  static constexpr int64_t blocks = 132, pairs = blocks / 2;
  /// Shared memory of a block: the ring, and behind it what results go through.
  static constexpr int64_t sharedBytes = 229376;

  /// What the two blocks of a pair do together: nothing; one tile, of which each has a half of k; or
  /// tiles below each other, for which each copies a half of the weight to both.
  enum class Pair { Apart, SharesK, SharesWeight };

  int64_t rows, columns;
  int64_t boxes;      ///< of 64 elements of k in a slot
  int64_t rowsOfSlot; ///< of the input
  Pair pair;
  /// This shape is for up to so many rows; 0: for any number, if it costs least. Where a pair shares k
  /// there is one tile for each pair at most.
  int64_t mostRows;

  bool groupsShareK() const { return rows == 64; }
  bool sharesK() const { return groupsShareK() || pair == Pair::SharesK; }
  int64_t getLeftBytes() const { return rowsOfSlot * bytesOfRow; }
  int64_t getRightBytes() const { return columns * bytesOfRow; }
  int64_t getSlotBytes() const { return boxes * (getLeftBytes() + getRightBytes()); }
  int64_t getResultBytes() const;
  int64_t getSlots() const;
  int64_t countSteps(int64_t elements) const;
  int64_t countColumnTiles(int64_t allColumns) const;
  /// Rows of tiles; blocks that share the weight have two each.
  int64_t countRowTiles(int64_t allRows) const;
  /// How long a round of tiles takes, to compare shapes for many rows.
  int64_t getCost(int64_t elements) const;
};

/// The shapes that a kernel has code for, those for up to some number of rows first. A shape that
/// shares k adds in an order of its own: an invariant product has none.
std::vector<LinearShape> getLinearShapes(int64_t columns, int64_t elements, bool isInvariant);

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_LINEARSHAPE_H
