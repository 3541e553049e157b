#include "LinearResults.h"

using namespace mlir;
using namespace mlir::moec;

LinearResults::LinearResults(HopperCode &code, moe::LinearOp op, ValueRange operands, Value result)
    : code(code), columns(moe::getLogicalShape(op.getWeight().getType())[0]), result(result) {
  auto next = operands.begin() + 2;
  bias = op.getBias() ? *next++ : Value();
  residual = op.getResidual() ? *next++ : Value();
  rows = code.toInt32(code.dim(result, 0));
}

bool LinearResults::usesBoxes(const LinearShape &shape) const {
  // The copy engine wants rows of whole 16 bytes.
  Type element = cast<MemRefType>(result.getType()).getElementType();
  return !shape.sharesK() && shape.columns % 16 == 0 && columns % 8 == 0 &&
         (element.isBF16() || element.isF16());
}

void LinearResults::describe(ArrayRef<LinearShape> shapes) {
  using Maps = ResultBoxes::Maps;
  for (const LinearShape &shape : shapes)
    if (usesBoxes(shape))
      for (int kind : ResultBoxes::split(shape.columns))
        if (!maps.maps[kind])
          maps.maps[kind] = code.tensorMap(result, {Maps::columns[kind], ResultBoxes::rows});
}

void LinearResults::begin(const LinearShape &shape, WarpgroupProduct &product, Value group) {
  this->product = &product;
  partialSums.reset();
  boxes.reset();
  int64_t offset = LinearShape::sharedBytes - shape.getResultBytes();
  if (shape.sharesK()) {
    partialSums.emplace(code, product, shape.groupsShareK() ? 2 : 1,
                        shape.pair == LinearShape::Pair::SharesK ? 2 : 1, offset);
  } else if (usesBoxes(shape)) {
    int64_t bytesOfGroup = shape.getResultBytes() / 2;
    boxes.emplace(code, maps, cast<MemRefType>(result.getType()).getElementType(),
                  code.plus(code.times(group, bytesOfGroup), offset),
                  bytesOfGroup / ResultBoxes::bytes, code.plus(group, 1));
  }
}

void LinearResults::finish() {
  if (boxes)
    boxes->finish();
}

void LinearResults::store(Value sums, Value row, Value column) {
  if (partialSums)
    storeShared(sums, row, column);
  else if (boxes)
    storeBoxes(sums, row, column);
  else
    storePairs(sums, row, column);
}

void LinearResults::storeBoxes(Value sums, Value firstRow, Value firstColumn) {
  boxes->store(*product, sums, firstRow, firstColumn, [&](int64_t half, Value column) {
    return loadTerms(code.add(firstRow, product->getRow(half)), code.add(firstColumn, column));
  });
}

void LinearResults::storeShared(Value sums, Value firstRow, Value firstColumn) {
  Value rowOfWarp = code.add(firstRow, code.times(code.warpInWarpgroup(), 16));
  auto load = [&](Value row, Value column) {
    return loadTerms(code.add(firstRow, row), code.add(firstColumn, column));
  };
  auto store = [&](Value row, Value column, Value pair) {
    Value r = code.add(firstRow, row), c = code.add(firstColumn, column);
    code.when(code.both(isBelow(r, rows), isBelow(c, code.int32(columns))),
              [&] { code.storePair(pair, result, {code.toIndex(r), code.toIndex(c)}); });
  };
  partialSums->exchange(sums, isBelow(rowOfWarp, rows), load, store);
}

void LinearResults::storePairs(Value sums, Value firstRow, Value firstColumn) {
  // A thread's results lie in two rows.
  for (int64_t half = 0; half < 2; ++half) {
    Value row = code.add(firstRow, product->getRow(half));
    product->forEachPair(sums, half, [&](Value column, Value first, Value second) {
      Value c = code.add(firstColumn, column);
      Value pair = code.fromLanes({first, second});
      for (Value term : loadTerms(row, c))
        pair = code.add(pair, term);
      code.when(code.both(isBelow(row, rows), isBelow(c, code.int32(columns))),
                [&] { code.storePair(pair, result, {code.toIndex(row), code.toIndex(c)}); });
    });
  }
}

SmallVector<Value, 2> LinearResults::loadTerms(Value row, Value column) {
  SmallVector<Value, 2> terms;
  if (!bias && !residual)
    return terms;
  Value c = column;
  if (columns % product->getColumns() != 0)
    c = code.minimum(c, code.int32(columns - 2));
  c = code.toIndex(c);
  if (bias)
    terms.push_back(code.loadPair(bias, c));
  if (residual) {
    Value r = code.minimum(row, code.sub(rows, code.int32(1)));
    terms.push_back(code.loadPair(residual, {code.toIndex(r), c}));
  }
  return terms;
}
