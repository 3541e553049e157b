//===- ExpertsResults.cpp - from sums to results: factor, bias, activation, place -------------===//
//
// A thread has two neighbouring columns of every fourth pair of tokens: the layout gives the rows
// `g` and `g + 8` of a product to columns `2 g` and `2 g + 1`. Eight lanes fill a sector of 32 bytes.
//
//===------------------------------------------------------------------------------------------===//

#include "../ApproximateMath.h"
#include "ExpertsBlock.h"

using namespace mlir;
using namespace mlir::moec;

Value ExpertsBlock::getFirstColumnInRun() {
  Value pair = code.shiftedRight(code.laneNumber(), 2);
  return code.add(code.times(code.warpInWarpgroup(), 16), code.times(pair, 2));
}

ExpertsBlock::ColumnValues ExpertsBlock::loadColumnValues(const Tile &tile, Value run) {
  CodeBuilder &lanes = code;
  ColumnValues values;
  Value offset = code.plus(code.times(getFirstColumnInRun(), 4),
                           fragments.getColumnTiles() * CodeFragments::tileBytes);
  Value both = LLVM::LoadOp::create(code, code.getLoc(), code.floatVector(2),
                                    code.offsetPointer(getRun(tile.expert, run), offset),
                                    /*alignment=*/8);
  values.factors = {lanes.lane(both, 0), lanes.lane(both, 1)};
  Value column = code.add(code.times(run, CodeFragments::tileRows), getFirstColumnInRun());
  values.isColumn = code.compare(arith::CmpIPredicate::slt, column, code.int32(columns));
  values.column = code.toIndex(code.select(values.isColumn, column, code.int32(0)));
  if (bias)
    for (int64_t i = 0; i < 2; ++i)
      values.biases.push_back(code.loadFloat(
          bias, {code.toIndex(tile.expert), getWeightRow(code.add(values.column, i))}));
  return values;
}

/// The row of an expert's weight, and the element of its bias, that a column (index) of the product
/// is.
Value ExpertsBlock::getWeightRow(Value column) {
  moe::ActivationAttr activation = op.getActivationAttr();
  if (!activation || activation.getInterleaved())
    return column;
  return code.add(code.divide(column, 2), code.mul(code.remainder(column, 2), columns / 2));
}

void ExpertsBlock::storeResults(int64_t width, ArrayRef<Value> sums, const Tile &tile,
                                const ColumnValues &ofColumn) {
  moe::ActivationAttr activation = op.getActivationAttr();
  ActivationMath exact;
  ApproximateMath approximate;
  Type element = cast<MemRefType>(result.getType()).getElementType();
  int64_t elementBytes = element.getIntOrFloatBitWidth() / 8;
  int64_t stride = columns / (activation ? 2 : 1) * elementBytes;
  // Nothing is stored for columns of the padding.
  Value tokens = code.select(ofColumn.isColumn, tile.tokens, code.int32(0));

  // The thread's first token in each eight; its second one is the next.
  Value first = code.times(code.andBits(code.laneNumber(), 3), 2);
  Value offset = code.mul(code.divide(ofColumn.column, activation ? 2 : 1), elementBytes);
  Value rowPointer = code.globalPointer(
      result, code.add(offset, code.mul(code.toIndex(code.add(tile.firstToken, first)), stride)));
  for (int64_t eight = 0; eight < width / 8; ++eight)
    for (int64_t next = 0; next < 2; ++next) {
      Value token = code.plus(first, 8 * eight + next);
      Value pointer = rowPointer;
      if (op.getScatter()) {
        Value isToken = code.compare(arith::CmpIPredicate::slt, token, tile.tokens);
        Value place = code.add(tile.firstToken, code.select(isToken, token, code.int32(0)));
        Value row = code.loadIndex(pairs, code.toIndex(place));
        pointer = code.globalPointer(result, code.add(offset, code.mul(row, stride)));
      }
      SmallVector<Value> values;
      for (int64_t half = 0; half < 2; ++half) {
        Value value = code.mul(sums[4 * eight + 2 * half + next], ofColumn.factors[half]);
        values.push_back(bias ? code.add(value, ofColumn.biases[half]) : value);
      }
      if (activation) {
        CodeBuilder &lanes = code;
        Value gated = buildActivation(code, activation, code.broadcast(values[0], 1),
                                      code.broadcast(values[1], 1),
                                      element.isF32() ? exact : approximate);
        values = {lanes.lane(gated, 0)};
      }
      code.storeWhenLess(token, tokens, pointer, values, element);
      // From row to row: addresses of all rows would fill the registers.
      rowPointer = code.offsetPointer(rowPointer, code.int32(next ? 7 * stride : stride));
    }
}
