//===- PartialSums.h - sums of warpgroups that share k ----------------------------------------===//
//
// Each warpgroup has sums over a part of k for the whole tile. It hands them out, a slice to each of the
// others, through shared memory of the block or of the cluster, and adds what it gets for its own slice:
// always in the order of k, so that the same bits come out every time.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_PARTIALSUMS_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_PARTIALSUMS_H

#include "HopperCode.h"

namespace mlir::moec {

class PartialSums {
public:
  /// `groups` warpgroups of a block (2, or 1: they have rows of their own) in each of the `blocks` of a
  /// cluster share k. `offset` is where in the dynamic shared memory getBytes() bytes begin.
  PartialSums(HopperCode &code, WarpgroupProduct &product, int64_t groups, int64_t blocks,
              int64_t offset);
  static int64_t getBytes(int64_t columns, int64_t groups, int64_t blocks);

  /// A pair of f32 from `column` on in `row` of the 64.
  using LoadTerms = function_ref<SmallVector<Value, 2>(Value row, Value column)>;
  using Store = function_ref<void(Value row, Value column, Value pair)>;
  /// Calls `store` for the pairs of results of this warpgroup's slice, with the pairs that `loadTerms` gave
  /// for them added. Threads of a warp without rows (`hasRows` is false) store nothing.
  /// In a cluster this works once a launch; every thread has arrived there before.
  void exchange(Value sums, Value hasRows, LoadTerms loadTerms, Store store);

private:
  void handOut(Value sums);
  void meet();

  HopperCode &code;
  WarpgroupProduct &product;
  int64_t groups, blocks, offset;
  int64_t parts, pairs; ///< of the tile in all, and of a slice
  Value group, part, inGroup;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_PARTIALSUMS_H
