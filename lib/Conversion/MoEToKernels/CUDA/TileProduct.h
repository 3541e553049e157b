//===- TileProduct.h - a tile of a product with f32 arithmetic, for any weight ----------------===//
//
// A block of 256 threads computes 64 rows times 64 columns. Rows of the input and of the weight go
// through shared memory, 32 of their elements at a time, widened to f32; each thread sums up four by
// four results in registers. K is walked in one order, so that a row's bits do not depend on the
// rows beside it.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_TILEPRODUCT_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_TILEPRODUCT_H

#include "BlockCode.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

class TileProduct {
public:
  static constexpr int64_t threads = 256, tileRows = 64, tileColumns = 64;

  /// `weight` is the logical type, [N, K] or [E, N, K], without a layout.
  TileProduct(BlockCode &code, Type weight);

  static bool supports(Type weight);

  /// `storage` has the weight's buffer, or those of its codes and its scales.
  void setWeight(ValueRange storage, Value expert);
  /// Rows are multiplied by `weight` and divided by their root mean square first.
  void setNorm(Value weight, double epsilon) {
    normWeight = weight;
    normEpsilon = epsilon;
  }

  /// Row `i` of the tile is row `inputRow(i)` of `input`, for i < rows; column `j` is row
  /// `weightRow(j)` of the weight, for j < columns. Calls `store` with four neighbouring results
  /// of a row (the first column is a multiple of four; later ones may lie behind `columns`).
  struct Tile {
    Value input, rows, columns;
    function_ref<Value(Value i)> inputRow;
    function_ref<Value(Value j)> weightRow;
    function_ref<void(Value i, Value j, ArrayRef<Value> results)> store;
  };
  void build(const Tile &tile);

private:
  static constexpr int64_t depth = 32, perThread = 4, pitch = depth + 1;
  /// Elements of a row that a thread brings to shared memory: four threads share a row.
  static constexpr int64_t perLoad = depth / 4;

  void loadInput(const Tile &tile, Value k, Value inputRow, Value isRow, Value factor);
  void loadWeight(Value k, Value weightRow, Value isColumn);
  SmallVector<Value> loadCodes(Value k, Value weightRow);
  Value computeNormFactor(const Tile &tile, Value inputRow, Value isRow);
  /// `perLoad` elements of this thread's part of a row from `k` on, 0 behind the row's end.
  SmallVector<Value> loadPart(Value k, Value condition, function_ref<Value(Value k)> load);
  SmallVector<Value> multiply(ValueRange sums);

  BlockCode &code;
  int64_t rows, columns;
  bool isMXFP4;
  Value loadRow, loadColumn, firstRow, firstColumn;
  Value inputTile, weightTile;
  SmallVector<Value> storage;
  Value expert, normWeight;
  double normEpsilon = 0;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_TILEPRODUCT_H
