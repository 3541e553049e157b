#include "ExpertTiles.h"

#include "../GatedActivation.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec;

ExpertTiles::ExpertTiles(BlockCode &code, moe::GroupedLinearOp op, ValueRange operands,
                         Value result, int64_t tileRows)
    : code(code), op(op), tileRows(tileRows), input(operands[0]), offsets(operands[1]),
      pairs(operands[2]), result(result) {
  size_t buffers = isa<moe::BlockTensorType>(op.getWeight().getType()) ? 2 : 1;
  storage = operands.slice(3, buffers);
  bias = op.getBias() ? operands[3 + buffers] : Value();
  ArrayRef<int64_t> shape = moe::getLogicalShape(op.getWeight().getType());
  experts = shape[0];
  columns = shape[1];
}

std::pair<Value, Value> ExpertTiles::find(Value number) {
  Value none = code.index(experts);
  SmallVector<Value> found = code.loop(
      code.index(0), none, 1, {none, code.index(0), number},
      [&](Value expert, ValueRange carried) -> SmallVector<Value> {
        Value count = code.sub(code.loadIndex(offsets, code.add(expert, 1)),
                               code.loadIndex(offsets, expert));
        Value tiles = code.divide(code.add(count, tileRows - 1), tileRows);
        // Unsigned: once found, what is left is a large number.
        Value isHere = code.isWithin(carried[2], tiles);
        return {code.select(isHere, expert, carried[0]), code.select(isHere, carried[2], carried[1]),
                code.sub(carried[2], tiles)};
      });
  return {found[0], found[1]};
}

void ExpertTiles::enter(Value ofExpert, Value tile) {
  expert = ofExpert;
  Value begin = code.loadIndex(offsets, expert);
  Value end = code.loadIndex(offsets, code.add(expert, 1));
  first = code.add(begin, code.mul(tile, tileRows));
  rows = code.sub(end, first);
}

Value ExpertTiles::getInputRow(Value i) {
  Value place = code.add(first, i);
  return op.getGather() ? code.divide(code.loadIndex(pairs, place), op.getTopK()) : place;
}

Value ExpertTiles::getWeightRow(Value j) {
  moe::ActivationAttr activation = op.getActivationAttr();
  if (!activation || activation.getInterleaved())
    return j;
  return code.add(code.divide(j, 2), code.mul(code.remainder(j, 2), columns / 2));
}

Value ExpertTiles::addBias(Value sum, Value column) {
  if (!bias)
    return sum;
  return code.add(sum, code.loadFloat(bias, {expert, getWeightRow(column)}));
}

void ExpertTiles::store(Value i, Value j, ArrayRef<Value> sums) {
  Value place = code.add(first, i);
  Value row = op.getScatter() ? code.loadIndex(pairs, place) : place;
  moe::ActivationAttr activation = op.getActivationAttr();
  int64_t step = activation ? 2 : 1;
  for (int64_t offset = 0; offset < static_cast<int64_t>(sums.size()); offset += step) {
    Value column = code.add(j, offset);
    code.when(code.isWithin(column, code.index(columns)), [&] {
      Value value = addBias(sums[offset], column);
      if (activation) {
        Value up = addBias(sums[offset + 1], code.add(column, 1));
        value = buildActivation(code, activation, code.broadcast(value, 1), code.broadcast(up, 1));
        value = static_cast<CodeBuilder &>(code).lane(value, 0);
      }
      code.storeFloat(value, result, {row, code.divide(column, step)});
    });
  }
}

OpFoldResult ExpertTiles::count(OpBuilder &builder, moe::GroupedLinearOp op, int64_t tileRows,
                                int64_t tileColumns) {
  CodeBuilder code(op.getLoc(), builder);
  ArrayRef<int64_t> shape = moe::getLogicalShape(op.getWeight().getType());
  int64_t columnTiles = llvm::divideCeil(shape[1], tileColumns);
  OpFoldResult pairs = tensor::getMixedSize(builder, op.getLoc(), op.getPairs(), 0);
  if (auto count = getConstantIntValue(pairs))
    return builder.getIndexAttr(
        std::min<int64_t>(*count, llvm::divideCeil(*count, tileRows) + shape[0]) * columnTiles);
  Value count = cast<Value>(pairs);
  Value full =
      arith::CeilDivUIOp::create(code, code.getLoc(), count, code.index(tileRows));
  return code.mul(code.minimum(code.add(full, shape[0]), count), columnTiles);
}
