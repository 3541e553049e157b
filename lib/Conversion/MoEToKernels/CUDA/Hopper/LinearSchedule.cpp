#include "LinearSchedule.h"

using namespace mlir;
using namespace mlir::moec;

using Pair = LinearShape::Pair;

void LinearSchedule::choose(Value rows, Value block) {
  this->rows = rows;
  this->block = block;
  Value least;
  for (auto [i, shape] : llvm::enumerate(shapes)) {
    if (shape.mostRows != 0)
      continue;
    Value tiles = code.times(countRowTiles(shape), shape.countColumnTiles(columns));
    Value cost = code.times(ceilDivide(tiles, LinearShape::blocks), shape.getCost(elements));
    if (!chosen) {
      chosen = code.int32(i);
      least = cost;
      continue;
    }
    Value isBetter = code.compare(arith::CmpIPredicate::slt, cost, least);
    if (shape.pair == Pair::SharesK)
      isBetter = code.both(isBetter, isAtMost(tiles, LinearShape::pairs));
    chosen = code.select(isBetter, code.int32(i), chosen);
    least = code.select(isBetter, cost, least);
  }
  for (int64_t i = shapes.size() - 1; i >= 0; --i)
    if (shapes[i].mostRows != 0)
      chosen = code.select(isAtMost(rows, shapes[i].mostRows), code.int32(i), chosen);
}

Value LinearSchedule::countRowTiles(const LinearShape &shape) {
  if (shape.pair == Pair::SharesWeight)
    return code.times(ceilDivide(rows, 2 * shape.rows), 2);
  return ceilDivide(rows, shape.rows);
}

void LinearSchedule::dispatchFrom(int64_t first, function_ref<void(int64_t)> body) {
  if (first + 1 == int64_t(shapes.size()))
    return body(first);
  code.choose(
      isChosen(first), [&] { body(first); }, [&] { dispatchFrom(first + 1, body); });
}

SmallVector<Value> LinearSchedule::forEachTile(const LinearShape &shape, ValueRange initial,
                                               TileBody body) {
  // Blocks at work at the same time share few rows and few columns, which the second cache holds:
  // tiles go through bands of rows, column by column. A pair that shares the weight takes two tiles
  // below each other at a time.
  bool isPair = shape.pair != Pair::Apart;
  int64_t height = shape.pair == Pair::SharesWeight ? 2 : 1, band = 16 / height;
  int64_t columnTiles = shape.countColumnTiles(columns);
  Value rowTiles = ceilDivide(rows, height * shape.rows);
  Value tiles = code.times(rowTiles, columnTiles);
  Value number = isPair ? code.shiftedRight(block, 1) : block;
  return code.loop(
      number, tiles, isPair ? LinearShape::pairs : LinearShape::blocks, initial,
      [&](Value tile, ValueRange carried) {
        Value ofBand = code.int32(band * columnTiles);
        Value first = code.times(code.divide(tile, ofBand), band);
        Value inBand = code.remainder(tile, ofBand);
        Value rowsOfBand = code.minimum(code.sub(rowTiles, first), code.int32(band));
        Value row = code.add(first, code.remainder(inBand, rowsOfBand));
        Value column = code.divide(inBand, rowsOfBand);
        if (height == 2)
          row = code.add(code.times(row, 2), code.blockInCluster());
        return body(code.times(row, shape.rows), code.times(column, shape.columns), carried);
      });
}

LinearSchedule::Steps LinearSchedule::getSteps(const LinearShape &shape) {
  Value none = code.int32(0), all = code.int32(shape.countSteps(elements));
  if (shape.pair != Pair::SharesK)
    return {none, all};
  Value isFirst = code.isEqual(code.blockInCluster(), 0);
  Value half = code.int32(shape.countSteps(elements) / 2);
  return {code.select(isFirst, none, half), code.select(isFirst, half, all)};
}
