//===- LinearSchedule.h - which tiles a block of a dense product on Hopper has ----------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_LINEARSCHEDULE_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_LINEARSCHEDULE_H

#include "HopperCode.h"
#include "LinearShape.h"

namespace mlir::moec {

class LinearSchedule {
public:
  LinearSchedule(HopperCode &code, std::vector<LinearShape> shapes, int64_t columns,
                 int64_t elements)
      : code(code), shapes(std::move(shapes)), columns(columns), elements(elements) {}

  ArrayRef<LinearShape> getShapes() const { return shapes; }

  /// Chooses the shape for `rows`; `block` is the number of this block (both i32).
  void choose(Value rows, Value block);
  Value isChosen(int64_t i) { return code.isEqual(chosen, i); }
  /// Builds `body` for the number of each shape, of which the chosen one runs.
  void dispatch(function_ref<void(int64_t)> body) { dispatchFrom(0, body); }

  /// For each tile of this block: its first row and column.
  using TileBody =
      function_ref<SmallVector<Value>(Value row, Value column, ValueRange carried)>;
  SmallVector<Value> forEachTile(const LinearShape &shape, ValueRange initial, TileBody body);

  /// The steps of k that this block has of a tile: the first, and the one behind the last.
  struct Steps {
    Value from, to;
  };
  Steps getSteps(const LinearShape &shape);

private:
  /// LinearShape::countRowTiles for the rows of this launch.
  Value countRowTiles(const LinearShape &shape);
  void dispatchFrom(int64_t first, function_ref<void(int64_t)> body);
  Value ceilDivide(Value a, int64_t b) {
    return arith::CeilDivUIOp::create(code, code.getLoc(), a, code.int32(b));
  }
  Value isAtMost(Value a, int64_t b) {
    return code.compare(arith::CmpIPredicate::sle, a, code.int32(b));
  }

  HopperCode &code;
  std::vector<LinearShape> shapes;
  int64_t columns, elements;
  Value rows, block, chosen;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_LINEARSCHEDULE_H
