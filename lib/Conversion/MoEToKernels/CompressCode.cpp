#include "CompressCode.h"

using namespace mlir;
using namespace mlir::moec;

void CompressCode::build(const SequencePart &part, Value channel, int64_t width) {
  SmallVector<Value> last = code.loop(
      part.first, part.end, 1, loadState(part, channel, width),
      [&](Value token, ValueRange before) { return takeToken(token, channel, width, before); });
  for (auto [row, value] : llvm::enumerate(last))
    store(value, state, {part.slot, code.index(row), channel}, width);
}

SmallVector<Value> CompressCode::loadState(const SequencePart &part, Value channel, int64_t width) {
  SmallVector<Value> content;
  for (int64_t row = 0; row < means * sizeOfMean; ++row)
    content.push_back(code.select(part.begins, constant(0, width),
                                  load(state, {part.slot, code.index(row), channel}, width)));
  return content;
}

SmallVector<Value> CompressCode::takeToken(Value token, Value channel, int64_t width,
                                           ValueRange before) {
  Value row = code.remainder(code.loadIndex(positions, token), ratio);
  Value isLast = code.compare(arith::CmpIPredicate::eq, row, code.index(ratio - 1));
  SmallVector<Value> content;
  for (int64_t mean = 0; mean < means; ++mean) {
    // The first half of the channels is the next window's, the last one this window's.
    Value column = code.add(channel, (means - 1 - mean) * channels);
    Value gate = code.add(load(gates, {token, column}, width), load(bias, {row, column}, width));
    Value key = load(keys, {token, column}, width);
    Value maximum = before[mean * sizeOfMean], sum = before[mean * sizeOfMean + 1],
          weighted = before[mean * sizeOfMean + 2];
    // Of an empty window the maximum says nothing.
    Value isEmpty = code.compare(arith::CmpFPredicate::OEQ, sum, constant(0, width));
    maximum = code.select(isEmpty, gate, maximum);
    Value larger = code.maximum(maximum, gate);
    Value fading = code.exp(code.sub(maximum, larger)), weight = code.exp(code.sub(gate, larger));
    content.append(
        {larger, code.fma(sum, fading, weight), code.fma(weighted, fading, code.mul(weight, key))});
  }
  Value entry = code.divide(content[2], content[1]);
  store(code.select(isLast, entry, constant(0, width)), result, {token, channel}, width);
  // A window that is complete makes room for the next one.
  SmallVector<Value> next(ArrayRef(content).drop_front(sizeOfMean));
  next.append(sizeOfMean, constant(0, width));
  for (auto [now, later] : llvm::zip(content, next))
    now = code.select(isLast, later, now);
  return content;
}
