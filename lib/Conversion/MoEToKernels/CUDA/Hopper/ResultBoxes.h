//===- ResultBoxes.h - from a warpgroup's registers to memory, through boxes ------------------===//
//
// A thread's sums lie in pairs all over the result, and stores of pairs waste most of what memory moves
// at once. Here warps store them as matrices to shared memory, in boxes of 64 rows as the copy engine
// has them, and the engine stores the boxes while the warpgroup goes on.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_RESULTBOXES_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_RESULTBOXES_H

#include "HopperCode.h"

namespace mlir::moec {

class ResultBoxes {
public:
  static constexpr int64_t rows = 64, bytes = rows * 128;

  /// Descriptions of the result in boxes of 64, 32 and 16 columns.
  struct Maps {
    static constexpr int64_t columns[] = {64, 32, 16};
    Value maps[3];
  };
  /// The columns of the boxes that make up `columns`, a multiple of 16: indices into Maps.
  static SmallVector<int> split(int64_t columns);

  /// The boxes of this warpgroup, `count` of them, are at byte `offset` (i32) of the dynamic shared
  /// memory; `barrier` is a named barrier of its own.
  ResultBoxes(HopperCode &code, const Maps &maps, Type element, Value offset, int64_t count,
              Value barrier);

  /// Pairs of f32 that are added to the pair of sums at `column` in a row of the 64 (half 0 or 1).
  using Terms = SmallVector<Value, 2>;
  using LoadTerms = function_ref<Terms(int64_t half, Value column)>;
  /// Stores the sums of `product` from `row` and `column` of the result on; what lies outside of the
  /// result is left out.
  void store(WarpgroupProduct &product, Value sums, Value row, Value column, LoadTerms loadTerms);
  /// Before the kernel ends.
  void finish();

private:
  /// Terms of all pairs of a box, in the order in which its pairs are written.
  SmallVector<Terms> loadBoxTerms(int64_t firstColumn, int64_t columns, LoadTerms loadTerms);
  void writeBox(WarpgroupProduct &product, Value sums, int64_t firstColumn, int64_t columns,
                Value box, ArrayRef<Terms> terms);
  void meet() { code.namedBarrier(barrier, HopperCode::warpgroupSize); }

  HopperCode &code;
  Maps maps;
  Type element;
  Value offset;
  int64_t count;
  Value barrier, isLeader, ofLane;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_RESULTBOXES_H
