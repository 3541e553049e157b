#include "PackedRows.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::moec;

RowPacker::RowPacker(Value input, int64_t columns) : input(input), columns(columns) {}

void RowPacker::setNorm(Value weight, double value) {
  normWeight = weight;
  epsilon = value;
}

Value RowPacker::sumSquares(CodeBuilder &code, Value row) const {
  int64_t whole = columns / panelRows * panelRows;
  Value zero = code.floatSplat(0, panelRows);
  Value lanes = code.loop(code.index(0), code.index(whole), panelRows, zero,
                          [&](Value column, ValueRange sum) -> SmallVector<Value> {
                            Value x = loadWidened(code, input, {row, column}, panelRows);
                            return {code.add(sum[0], code.mul(x, x))};
                          })[0];
  Value sum = code.sumLanes(lanes);
  return code.loop(code.index(whole), code.index(columns), 1, sum,
                   [&](Value column, ValueRange sum) -> SmallVector<Value> {
                     Value x = loadWidened(code, input, {row, column});
                     return {code.add(sum[0], code.mul(x, x))};
                   })[0];
}

Value RowPacker::computeInverseRMS(CodeBuilder &code, Value row) const {
  Value count = code.float32(static_cast<double>(columns));
  Value mean = code.divide(sumSquares(code, row), count);
  Value root = math::SqrtOp::create(code, code.getLoc(), code.add(mean, code.float32(epsilon)));
  return code.divide(code.float32(1), root);
}

Value RowPacker::loadColumns(CodeBuilder &code, Value row, Value column, int64_t lanes,
                             Value inverse) const {
  auto load = [&](Value from, ValueRange indices) {
    return lanes ? loadWidened(code, from, indices, lanes) : loadWidened(code, from, indices);
  };
  Value x = load(input, {row, column});
  if (!inverse)
    return x;
  Value factor = lanes ? code.broadcast(inverse, lanes) : inverse;
  Value scaled = code.mul(code.mul(x, factor), load(normWeight, column));
  return roundThrough(code, scaled, cast<MemRefType>(input.getType()).getElementType());
}

void FloatRows::store(CodeBuilder &code, Value columns, Value token, Value block,
                      Value offset) const {
  Value row = code.add(code.mul(block, tokens), token);
  code.storeFloats(columns, rows, code.add(code.mul(row, blockColumns), offset));
}

void RowPacker::pack(CodeBuilder &code, Value row, const RowDestination &destination,
                     Value token) const {
  Value inverse = normWeight ? computeInverseRMS(code, row) : Value();
  int64_t wholeBlocks = columns / blockColumns;
  if (wholeBlocks > 0)
    code.loop(0, wholeBlocks, 1, [&](Value block) {
      Value from = code.mul(block, blockColumns);
      for (int64_t i = 0; i < blockColumns; i += panelRows)
        destination.store(code, loadColumns(code, row, code.add(from, i), panelRows, inverse),
                          token, block, code.index(i));
    });
  if (columns % blockColumns == 0)
    return;
  Value block = code.index(wholeBlocks);
  for (int64_t i = 0; i < blockColumns; i += panelRows)
    destination.store(code, code.floatSplat(0, panelRows), token, block, code.index(i));
  code.loop(0, columns % blockColumns, 1, [&](Value i) {
    Value column = code.add(i, wholeBlocks * blockColumns);
    Value one = code.broadcast(loadColumns(code, row, column, 0, inverse), 1);
    destination.store(code, one, token, block, i);
  });
}
