#include "HyperWeightsCode.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

void HyperWeightsCode::build(Value token, Value squares) {
  int64_t features = op.getStreams().getType().getDimSize(2);
  Value mean = code.divide(squares, code.float32(double(streams * features)));
  Value shifted = code.add(mean, code.float32(op.getNormEpsilon().convertToDouble()));
  Value factor = code.divide(code.float32(1), math::SqrtOp::create(code, code.getLoc(), shifted));
  Value epsilon = code.float32(op.getEpsilon().convertToDouble());

  SmallVector<Value> pre = load(token, factor, 0, streams, 0);
  for (Value &x : pre)
    x = code.add(sigmoid(x), epsilon);
  store(token, 0, pre);
  if (columns == streams)
    return;

  SmallVector<Value> post = load(token, factor, streams, streams, 1);
  for (Value &x : post)
    x = code.mul(code.float32(2), sigmoid(x));
  store(token, streams, post);

  SmallVector<Value> mix = load(token, factor, 2 * streams, streams * streams, 2);
  for (int64_t row = 0; row < streams; ++row)
    buildSoftmax(MutableArrayRef(mix).slice(row * streams, streams));
  for (Value &x : mix)
    x = code.add(x, epsilon);
  divideColumns(mix);
  mix = code.loop(code.index(1), code.index(op.getIterations()), 1, mix,
                  [&](Value, ValueRange carried) {
                    SmallVector<Value> matrix(carried);
                    divideRows(matrix);
                    divideColumns(matrix);
                    return matrix;
                  });
  store(token, 2 * streams, mix);
}

SmallVector<Value> HyperWeightsCode::load(Value token, Value factor, int64_t first, int64_t count,
                                          int64_t part) {
  Value scaled = code.mul(factor, code.loadFloat(scale, code.index(part)));
  SmallVector<Value> numbers;
  for (int64_t i = first; i < first + count; ++i) {
    Value column = code.index(i);
    numbers.push_back(
        code.fma(code.loadFloat(products, {token, column}), scaled, code.loadFloat(base, column)));
  }
  return numbers;
}

Value HyperWeightsCode::sigmoid(Value x) {
  Value one = code.float32(1);
  return code.divide(one, code.add(one, code.exp(code.sub(code.float32(0), x))));
}

void HyperWeightsCode::buildSoftmax(MutableArrayRef<Value> row) {
  Value largest = row.front(), sum;
  for (Value x : row.drop_front())
    largest = code.maximum(largest, x);
  for (Value &x : row) {
    x = code.exp(code.sub(x, largest));
    sum = sum ? code.add(sum, x) : x;
  }
  for (Value &x : row)
    x = code.divide(x, sum);
}

void HyperWeightsCode::divide(MutableArrayRef<Value> matrix, int64_t stepOfLine,
                              int64_t stepInLine) {
  for (int64_t line = 0; line < streams; ++line) {
    Value sum = code.float32(op.getEpsilon().convertToDouble());
    for (int64_t i = 0; i < streams; ++i)
      sum = code.add(sum, matrix[line * stepOfLine + i * stepInLine]);
    for (int64_t i = 0; i < streams; ++i) {
      Value &x = matrix[line * stepOfLine + i * stepInLine];
      x = code.divide(x, sum);
    }
  }
}

void HyperWeightsCode::store(Value token, int64_t first, ValueRange weights) {
  for (auto [i, weight] : llvm::enumerate(weights))
    code.storeFloat(weight, result, {token, code.index(first + int64_t(i))});
}
