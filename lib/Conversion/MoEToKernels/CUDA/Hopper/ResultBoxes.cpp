#include "ResultBoxes.h"

using namespace mlir;
using namespace mlir::moec;

/// Columns of a matrix, and bytes of a row of it. One instruction stores two by two of them.
static constexpr int64_t matrixColumns = 8, matrixRowBytes = 16;

SmallVector<int> ResultBoxes::split(int64_t columns) {
  SmallVector<int> boxes;
  for (auto [i, boxColumns] : llvm::enumerate(Maps::columns))
    for (; columns >= boxColumns; columns -= boxColumns)
      boxes.push_back(i);
  return boxes;
}

ResultBoxes::ResultBoxes(HopperCode &code, const Maps &maps, Type element, Value offset,
                         int64_t count, Value barrier)
    : code(code), maps(maps), element(element), offset(offset), count(count), barrier(barrier) {
  isLeader = code.isEqual(code.andBits(code.threadNumber(), HopperCode::warpgroupSize - 1), 0);
  // Lanes 0 to 15 have the rows of the first two matrices, the others those of the next two, which lie
  // one matrix to the right. A row has 128 bytes, in a narrow box too, and the swizzle exchanges its
  // pieces of 16 by the row's number.
  constexpr int64_t rowBytes = bytes / rows;
  Value lane = code.laneNumber();
  Value row = code.add(code.times(code.warpInWarpgroup(), 16), code.andBits(lane, 15));
  Value piece = code.exclusiveOr(code.shiftedRight(lane, 4), code.andBits(lane, 7));
  ofLane = code.add(code.times(row, rowBytes), code.times(piece, matrixRowBytes));
}

void ResultBoxes::store(WarpgroupProduct &product, Value sums, Value row, Value column,
                        LoadTerms loadTerms) {
  struct Box {
    int64_t column, columns;
    Value map, place;
  };
  SmallVector<Box> boxes;
  int64_t next = 0;
  for (auto [i, kind] : llvm::enumerate(split(product.getColumns()))) {
    boxes.push_back({next, Maps::columns[kind], maps.maps[kind],
                     code.plus(offset, int64_t(i) % count * bytes)});
    next += Maps::columns[kind];
  }
  for (int64_t first = 0; first < int64_t(boxes.size()); first += count) {
    auto group = ArrayRef(boxes).slice(first).take_front(count);
    SmallVector<Terms> terms = loadBoxTerms(group[0].column, group[0].columns, loadTerms);
    code.when(isLeader, [&] { code.waitForStores(); });
    meet();
    for (const Box &box : group) {
      if (&box != &group[0])
        terms = loadBoxTerms(box.column, box.columns, loadTerms);
      writeBox(product, sums, box.column, box.columns, box.place, terms);
    }
    code.fenceAsyncProxy();
    meet();
    code.when(isLeader, [&] {
      for (const Box &box : group)
        code.storeBox(code.dynamicShared(box.place), box.map, {code.plus(column, box.column), row});
      code.commitStores();
    });
  }
}

SmallVector<ResultBoxes::Terms> ResultBoxes::loadBoxTerms(int64_t firstColumn, int64_t columns,
                                                          LoadTerms loadTerms) {
  Value columnOfLane = code.times(code.andBits(code.laneNumber(), 3), 2);
  SmallVector<Terms> terms;
  for (int64_t column = firstColumn; column < firstColumn + columns; column += matrixColumns)
    for (int64_t half = 0; half < 2; ++half)
      terms.push_back(loadTerms(half, code.plus(columnOfLane, column)));
  return terms;
}

void ResultBoxes::writeBox(WarpgroupProduct &product, Value sums, int64_t firstColumn,
                           int64_t columns, Value box, ArrayRef<Terms> terms) {
  for (int64_t pair = 0; pair < columns / 4; pair += 4) {
    SmallVector<Value> words;
    for (int64_t i = pair; i < pair + 4; ++i) {
      Value total = product.getPair(sums, firstColumn / 4 + i);
      for (Value term : terms[i])
        total = code.add(total, term);
      words.push_back(code.roundPair(total, element));
    }
    Value inRow = code.int32(pair / 2 * matrixRowBytes);
    code.storeMatrices(code.dynamicShared(code.add(box, code.exclusiveOr(ofLane, inRow))), words);
  }
}

void ResultBoxes::finish() {
  code.when(isLeader, [&] { code.waitForStores(); });
}
