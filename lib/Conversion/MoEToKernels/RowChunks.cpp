#include "RowChunks.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::moec;

/// A chunk of fewer bytes of weights costs more to hand out than to compute; one of more panels
/// keeps too many sums.
constexpr int64_t leastChunkBytes = 24 * 1024, mostChunkPanels = 32;

static int64_t choosePanels(const WeightPanels &weight, int64_t mostChunks) {
  int64_t panels = llvm::divideCeil(weight.getPanels(), mostChunks);
  panels = std::max<int64_t>(panels, llvm::divideCeil(leastChunkBytes, weight.getPanelBytes()));
  panels = std::min(panels, mostChunkPanels);
  // Kernels take panels in pairs or fours.
  return llvm::alignTo(panels, panels > 4 ? 4 : 2);
}

RowChunks::RowChunks(const WeightPanels &weight, moe::ActivationAttr activation, int64_t mostChunks)
    : activation(activation), outputs(weight.getRows() / (activation ? 2 : 1)),
      panels(weight.getPanels()), ranges(isConcatenated() ? 2 : 1) {
  int64_t chunkPanels = choosePanels(weight, mostChunks);
  chunkOutputs = chunkPanels * panelRows / (activation ? 2 : 1);
  panelsPerRange = chunkPanels / ranges;
  // Up rows that start inside a panel reach into one panel more.
  if (isConcatenated() && outputs % panelRows != 0)
    ++panelsPerRange;
}

void RowChunks::forEachRange(CodeBuilder &code, Value chunk,
                             function_ref<void(Value, Value, Value)> body) const {
  int64_t step = chunkOutputs * (isInterleaved() ? 2 : 1) / panelRows;
  Value first = code.mul(chunk, step);
  code.loop(0, ranges, 1, [&](Value range) {
    Value panel = code.add(first, code.mul(range, outputs / panelRows));
    Value rest = code.sub(code.index(panels), panel);
    Value count = code.minimum(code.index(panelsPerRange), rest);
    body(panel, code.mul(range, panelsPerRange), count);
  });
}

static Value shuffle(CodeBuilder &code, Value a, Value b, int64_t first, int64_t step) {
  SmallVector<int64_t> lanes;
  for (int64_t i = 0; i < panelRows; ++i)
    lanes.push_back(first + i * step);
  return vector::ShuffleOp::create(code, code.getLoc(), a, b, lanes);
}

RowChunks::GateAndUp RowChunks::loadOutputs(CodeBuilder &code, Value vector,
                                            function_ref<Value(Value)> load) const {
  if (!activation)
    return {load(vector), {}};
  if (isInterleaved()) {
    Value q = code.mul(vector, 2);
    Value low = load(q), high = load(code.add(q, 1));
    return {shuffle(code, low, high, 0, 2), shuffle(code, low, high, 1, 2)};
  }
  Value q = code.add(vector, panelsPerRange);
  Value up = load(q);
  if (int64_t shift = outputs % panelRows)
    up = shuffle(code, up, load(code.add(q, 1)), shift, 1);
  return {load(vector), up};
}
