#include "PanelProduct.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::moec;

PanelProduct::PanelProduct(const WeightPanels &weight, const TargetDescription &target)
    : weight(weight), fused(target.has("fma") || target.has("avx512f")),
      vectorBytes(target.getVectorBytes()) {
  // The sums of a tile fill three quarters of the registers; the rest hold weights and a broadcast
  // activation.
  if (vectorBytes == 64)
    tile = {12, 2};
  else if (vectorBytes == 32)
    tile = {6, 1};
  else
    tile = {3, 1};
}

void PanelProduct::allocate(ScratchAllocator &allocator, Type f32) {
  buffer = allocator.allocate({blockColumns * tile.panels * panelRows}, f32);
}

int64_t PanelProduct::getTokenCapacity() const {
  constexpr int64_t rowBytes = 512 * 1024, unit = 12;
  int64_t fitting = rowBytes / (weight.getBlocks() * blockColumns * 4);
  return std::clamp<int64_t>(fitting / unit * unit, 2 * unit, 8 * unit);
}

void PanelProduct::build(CodeBuilder &code, const TokenBlock &block, Value firstPanel,
                         Value firstSum, Value count) const {
  Value few = code.compare(arith::CmpIPredicate::sle, block.tokens, code.index(fewTokens));
  auto nothing = [] { return SmallVector<Value>(); };
  code.choose(
      few, {},
      [&] {
        stream(code, block, firstPanel, firstSum, count);
        return nothing();
      },
      [&] {
        decodeOnce(code, block, firstPanel, firstSum, count);
        return nothing();
      });
}

void PanelProduct::buildRare(CodeBuilder &code, const TokenBlock &block, Value firstPanel,
                             Value firstSum, Value count) const {
  code.loop(code.index(0), count, 1, [&](Value i) {
    code.loop(code.index(0), block.tokens, 1, [&](Value token) {
      streamPanels(code, block, {1, 1}, code.add(firstPanel, i), code.add(firstSum, i), token);
    });
  });
}

//===------------------------------------------------------------------------------------------===//
// What both paths share
//===------------------------------------------------------------------------------------------===//

void PanelProduct::forEachRun(CodeBuilder &code, Value count, int64_t width,
                              function_ref<void(Value, int64_t)> body) const {
  Value whole = code.mul(code.divide(count, width), width);
  code.loop(code.index(0), whole, width, [&](Value first) { body(first, width); });
  if (width > 1)
    code.loop(whole, count, 1, [&](Value first) { body(first, 1); });
}

PanelProduct::Sums
PanelProduct::forEachGroup(CodeBuilder &code, Tile tile, int64_t slots,
                           function_ref<void(Value group, int64_t slots, Sums &sums)> body) const {
  Sums sums(tile.tokens * tile.panels, code.floatSplat(0, panelRows));
  int64_t whole = slots / groupSlots;
  if (whole > 0)
    sums =
        code.loop(code.index(0), code.index(whole), 1, sums, [&](Value group, ValueRange carried) {
          Sums inner(carried);
          body(group, groupSlots, inner);
          return inner;
        });
  if (int64_t rest = slots % groupSlots)
    body(code.index(whole), rest, sums);
  return sums;
}

void PanelProduct::multiplyGroup(CodeBuilder &code, const TokenBlock &block, Tile tile,
                                 Value rowBase, ArrayRef<SmallVector<Value>> columns,
                                 Sums &sums) const {
  for (size_t slot = 0; slot < columns.front().size(); ++slot) {
    for (int64_t t = 0; t < tile.tokens; ++t) {
      Value at = code.add(rowBase, t * blockColumns + weight.getColumnOfSlot(slot));
      Value x = code.broadcast(code.loadFloat(block.rows, at), panelRows);
      for (int64_t p = 0; p < tile.panels; ++p) {
        Value &sum = sums[p * tile.tokens + t];
        sum = multiplyAdd(code, fused, x, columns[p][slot], sum);
      }
    }
  }
}

/// Index of the first packed activation of a token in a block.
static Value getRowBase(CodeBuilder &code, const TokenBlock &block, Value index, Value token) {
  return code.mul(code.add(code.mul(index, block.tokens), token), blockColumns);
}

static Value getSumBase(CodeBuilder &code, const TokenBlock &block, Value sum, Value token) {
  return code.mul(code.add(code.mul(sum, block.tokens), token), panelRows);
}

//===------------------------------------------------------------------------------------------===//
// Few tokens
//===------------------------------------------------------------------------------------------===//

void PanelProduct::stream(CodeBuilder &code, const TokenBlock &block, Value firstPanel,
                          Value firstSum, Value count) const {
  // So many panels at once that their chains of sums hide the latency of a fused multiply-add.
  auto panelsFor = [&](int64_t tokens) -> int64_t {
    if (vectorBytes == 64)
      return tokens == 4 ? 2 : 4;
    if (vectorBytes == 32)
      return tokens == 4 ? 1 : 2;
    return 1;
  };
  for (int64_t tokens : {4, 2, 1}) {
    // The binary digits of the number of tokens.
    Value above = code.mul(code.divide(block.tokens, 2 * tokens), 2 * tokens);
    Value rest = code.remainder(block.tokens, 2 * tokens);
    Value wanted = code.compare(arith::CmpIPredicate::sge, rest, code.index(tokens));
    code.when(wanted, [&] {
      forEachRun(code, count, panelsFor(tokens), [&](Value first, int64_t panels) {
        streamPanels(code, block, {tokens, panels}, code.add(firstPanel, first),
                     code.add(firstSum, first), above);
      });
    });
  }
}

void PanelProduct::streamPanels(CodeBuilder &code, const TokenBlock &block, Tile tile, Value panel,
                                Value sum, Value token) const {
  Sums sums(tile.tokens * tile.panels, code.floatSplat(0, panelRows));
  if (weight.getWholeBlocks() > 0)
    sums = code.loop(code.index(0), code.index(weight.getWholeBlocks()), 1, sums,
                     [&](Value index, ValueRange carried) {
                       return streamBlock(code, block, tile, panel, index, token, blockColumns,
                                          carried);
                     });
  if (int64_t tail = weight.getTailSlots())
    sums = streamBlock(code, block, tile, panel, code.index(weight.getWholeBlocks()), token, tail,
                       sums);
  for (int64_t p = 0; p < tile.panels; ++p)
    for (int64_t t = 0; t < tile.tokens; ++t) {
      Value at = getSumBase(code, block, code.add(sum, p), code.add(token, t));
      code.storeFloats(sums[p * tile.tokens + t], block.sums, at);
    }
}

PanelProduct::Sums PanelProduct::streamBlock(CodeBuilder &code, const TokenBlock &block, Tile tile,
                                             Value panel, Value index, Value token, int64_t slots,
                                             ValueRange sums) const {
  SmallVector<Value> bases;
  for (int64_t p = 0; p < tile.panels; ++p)
    bases.push_back(weight.getBlockBase(code, code.add(panel, p), index));
  Value rowBase = getRowBase(code, block, index, token);

  Sums inner = forEachGroup(code, tile, slots, [&](Value group, int64_t width, Sums &carried) {
    SmallVector<SmallVector<Value>> columns;
    for (Value base : bases)
      columns.push_back(weight.loadGroup(code, base, group, width));
    Value rowAt = code.add(rowBase, code.mul(group, groupSlots));
    multiplyGroup(code, block, tile, rowAt, columns, carried);
  });

  Sums result;
  for (int64_t p = 0; p < tile.panels; ++p) {
    Value scale = weight.loadScales(code, bases[p]);
    for (int64_t t = 0; t < tile.tokens; ++t) {
      int64_t i = p * tile.tokens + t;
      result.push_back(scale ? multiplyAdd(code, fused, inner[i], scale, sums[i])
                             : code.add(sums[i], inner[i]));
    }
  }
  return result;
}

//===------------------------------------------------------------------------------------------===//
// Many tokens
//===------------------------------------------------------------------------------------------===//

void PanelProduct::decodeOnce(CodeBuilder &code, const TokenBlock &block, Value firstPanel,
                              Value firstSum, Value count) const {
  Value last = code.sub(code.add(firstPanel, count), code.index(1));
  code.loop(code.index(0), count, tile.panels, [&](Value first) {
    // An odd last panel is its own neighbour.
    SmallVector<Value> panels;
    for (int64_t p = 0; p < tile.panels; ++p)
      panels.push_back(code.minimum(code.add(code.add(firstPanel, first), p), last));
    decodePanels(code, block, panels, code.add(firstSum, first));
  });
}

void PanelProduct::decodePanels(CodeBuilder &code, const TokenBlock &block, ArrayRef<Value> panels,
                                Value sum) const {
  Value begin = code.mul(code.mul(sum, block.tokens), panelRows);
  Value size = code.mul(block.tokens, panels.size() * panelRows);
  code.loop(begin, code.add(begin, size), panelRows,
            [&](Value at) { code.storeFloats(code.floatSplat(0, panelRows), block.sums, at); });
  if (weight.getWholeBlocks() > 0)
    code.loop(0, weight.getWholeBlocks(), 1,
              [&](Value index) { multiplyBuffer(code, block, panels, sum, index, blockColumns); });
  if (int64_t tail = weight.getTailSlots())
    multiplyBuffer(code, block, panels, sum, code.index(weight.getWholeBlocks()), tail);
}

void PanelProduct::multiplyBuffer(CodeBuilder &code, const TokenBlock &block,
                                  ArrayRef<Value> panelIndices, Value sum, Value index,
                                  int64_t slots) const {
  int64_t panels = panelIndices.size();
  SmallVector<Value> scales;
  for (auto [p, panel] : llvm::enumerate(panelIndices)) {
    Value base = weight.getBlockBase(code, panel, index);
    forEachGroup(code, {0, 0}, slots, [&](Value group, int64_t width, Sums &) {
      for (auto [slot, column] : llvm::enumerate(weight.loadGroup(code, base, group, width))) {
        Value row = code.add(code.mul(group, groupSlots), slot);
        Value at = code.mul(code.add(code.mul(row, panels), p), panelRows);
        code.storeFloats(column, buffer, at);
      }
    });
    scales.push_back(weight.loadScales(code, base));
  }

  int64_t width = tile.tokens;
  Value whole = code.mul(code.divide(block.tokens, width), width);
  code.loop(code.index(0), whole, width, [&](Value token) {
    multiplyTile(code, block, {width, panels}, sum, index, token, slots, scales);
  });
  // The rest by its binary digits.
  Value rest = code.remainder(block.tokens, width);
  for (int64_t part = llvm::bit_floor(static_cast<uint64_t>(width - 1)); part > 0; part /= 2) {
    Value above = code.mul(code.divide(rest, 2 * part), 2 * part);
    Value left = code.remainder(rest, 2 * part);
    Value wanted = code.compare(arith::CmpIPredicate::sge, left, code.index(part));
    code.when(wanted, [&] {
      multiplyTile(code, block, {part, panels}, sum, index, code.add(whole, above), slots, scales);
    });
  }
}

void PanelProduct::multiplyTile(CodeBuilder &code, const TokenBlock &block, Tile tile, Value sum,
                                Value index, Value token, int64_t slots,
                                ArrayRef<Value> scales) const {
  Value rowBase = getRowBase(code, block, index, token);
  Sums inner = forEachGroup(code, tile, slots, [&](Value group, int64_t width, Sums &carried) {
    Value first = code.mul(group, groupSlots * tile.panels * panelRows);
    SmallVector<SmallVector<Value>> columns(tile.panels);
    for (int64_t slot = 0; slot < width; ++slot)
      for (int64_t p = 0; p < tile.panels; ++p)
        columns[p].push_back(code.loadFloats(
            buffer, code.add(first, (slot * tile.panels + p) * panelRows), panelRows));
    Value rowAt = code.add(rowBase, code.mul(group, groupSlots));
    multiplyGroup(code, block, tile, rowAt, columns, carried);
  });
  for (int64_t p = 0; p < tile.panels; ++p)
    for (int64_t t = 0; t < tile.tokens; ++t) {
      Value at = getSumBase(code, block, code.add(sum, p), code.add(token, t));
      Value before = code.loadFloats(block.sums, at, panelRows);
      Value product = inner[p * tile.tokens + t];
      Value after = scales[p] ? multiplyAdd(code, fused, product, scales[p], before)
                              : code.add(before, product);
      code.storeFloats(after, block.sums, at);
    }
}
