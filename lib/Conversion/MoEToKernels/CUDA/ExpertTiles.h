//===- ExpertTiles.h - tiles of the rows that were routed to experts --------------------------===//
//
// Rows of all experts are cut into tiles, numbered through; a block finds its expert by walking over
// the offsets. Columns of a tile alternate between gate and up, so that one thread has both.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_EXPERTTILES_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_EXPERTTILES_H

#include "BlockCode.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

class ExpertTiles {
public:
  ExpertTiles(BlockCode &code, moe::GroupedLinearOp op, ValueRange operands, Value result,
              int64_t tileRows);

  /// Codes and scales, or the one buffer of a dense weight.
  ValueRange getStorage() const { return storage; }
  Value getInput() const { return input; }
  int64_t getColumns() const { return columns; }

  /// The expert of tile `number` and which of its tiles it is. With fewer tiles the expert is the
  /// number of experts.
  std::pair<Value, Value> find(Value number);
  Value isExpert(Value expert) const { return code.isWithin(expert, code.index(experts)); }

  /// Chooses the tile that the rest is about.
  void enter(Value expert, Value tile);
  Value getExpert() const { return expert; }
  /// Rows of the tile and of later ones of the expert.
  Value countRows() const { return rows; }
  /// The row of the input that is row `i` of the tile.
  Value getInputRow(Value i);
  /// The row of an expert's weight that is column `j` of its tiles.
  Value getWeightRow(Value j);
  /// Stores neighbouring results of row `i` from column `j` (even) on: with bias and activation.
  void store(Value i, Value j, ArrayRef<Value> sums);

  /// At most one tile that is not full for each expert, and at most one for each pair; times the
  /// tiles of columns.
  static OpFoldResult count(OpBuilder &builder, moe::GroupedLinearOp op, int64_t tileRows,
                            int64_t tileColumns);

private:
  Value addBias(Value sum, Value column);

  BlockCode &code;
  moe::GroupedLinearOp op;
  int64_t tileRows, experts, columns;
  Value input, offsets, pairs, bias, result;
  ValueRange storage;
  Value expert, first, rows;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_EXPERTTILES_H
