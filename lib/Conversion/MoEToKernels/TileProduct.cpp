#include "TileProduct.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::moec;

/// Scale bytes under which every number is zero or a normal, finite bf16.
constexpr int64_t leastScale = 2, mostScale = 252;
/// Elements of a bf16 tile: 16 rows of 64 bytes.

TileProduct::TileProduct(const WeightPanels &weight, Type input)
    : weight(weight), parts(input.isBF16() ? 1 : 3) {}

bool TileProduct::isSupported(Type type, const TargetDescription &target) {
  WeightPanels weight(type);
  return target.has("amx-bf16") && target.getVectorBytes() == 64 &&
         (weight.isMXFP4() || weight.isPairs());
}

int64_t TileProduct::getTokenCapacity() const {
  constexpr int64_t bytes = 1536 * 1024, unit = 2 * tileTokens;
  int64_t fitting = bytes / (parts * weight.getBlocks() * blockColumns * 2);
  return std::clamp<int64_t>(fitting / unit * unit, 2 * unit, 8 * unit);
}

void TileProduct::allocate(ScratchAllocator &allocator, MLIRContext *context) {
  Type bf16 = BFloat16Type::get(context);
  tiles = allocator.allocate(
      {parts, getTokenCapacity() / tileTokens, weight.getBlocks(), tileTokens, blockColumns}, bf16);
  slab = allocator.allocate({weight.getBlocks(), 2, tileTokens, blockColumns}, bf16);
}

void TileProduct::store(CodeBuilder &code, Value columns, Value token, Value block,
                        Value offset) const {
  Type bf16 = code.getBF16Type();
  Value tile = code.divide(token, tileTokens), row = code.remainder(token, tileTokens);
  for (int64_t part = 0; part < parts; ++part) {
    storeRounded(code, columns, tiles, {code.index(part), tile, block, row, offset});
    if (part + 1 < parts)
      columns = code.sub(columns, roundThrough(code, columns, bf16));
  }
}

void TileProduct::build(CodeBuilder &code, const TokenBlock &block, Value firstPanel,
                        Value firstSum, Value count,
                        function_ref<void(Value, Value, Value)> leftOver) const {
  Value last = code.sub(count, code.index(1));
  code.loop(code.index(0), count, 2, [&](Value first) {
    // An odd last panel is its own neighbour; its second sums go nowhere.
    Value second = code.minimum(code.add(first, 1), last);
    Pair pair = {{code.add(firstPanel, first), code.add(firstPanel, second)},
                 {code.add(firstSum, first), code.add(code.add(firstSum, first), 1)}};
    if (!weight.isMXFP4()) {
      copyTail(code, pair);
      multiply(code, block, pair);
      return;
    }
    Value outOfRange = convert(code, pair);
    auto nothing = [] { return SmallVector<Value>(); };
    code.choose(
        outOfRange, {},
        [&] {
          Value both = code.add(code.sub(second, first), 1);
          leftOver(pair.panels[0], pair.sums[0], both);
          return nothing();
        },
        [&] {
          multiply(code, block, pair);
          return nothing();
        });
  });
}

//===------------------------------------------------------------------------------------------===//
// Weights to tiles
//===------------------------------------------------------------------------------------------===//

static Value splat(CodeBuilder &code, VectorType type, int64_t value) {
  APInt bits(type.getElementTypeBitWidth(), static_cast<uint64_t>(value), false, true);
  return arith::ConstantOp::create(code, code.getLoc(), DenseElementsAttr::get(type, bits));
}

Value TileProduct::convert(CodeBuilder &code, const Pair &pair) const {
  auto bytes = VectorType::get({panelRows}, code.getI8Type());
  SmallVector<Value> range = {splat(code, bytes, 127), splat(code, bytes, 127)};
  range = code.loop(code.index(0), code.index(weight.getBlocks()), 1, range,
                    [&](Value block, ValueRange carried) -> SmallVector<Value> {
                      Value least = carried[0], most = carried[1];
                      for (int64_t side : {0, 1})
                        std::tie(least, most) =
                            convertBlock(code, pair.panels[side], side, block, least, most);
                      return {least, most};
                    });
  auto reduce = [&](vector::CombiningKind kind, Value vector) -> Value {
    Value wide = arith::ExtUIOp::create(code, code.getLoc(), code.intVector(panelRows), vector);
    return vector::ReductionOp::create(code, code.getLoc(), kind, wide);
  };
  Value tooSmall =
      code.compare(arith::CmpIPredicate::slt, reduce(vector::CombiningKind::MINSI, range[0]),
                   code.int32(leastScale));
  Value tooLarge =
      code.compare(arith::CmpIPredicate::sgt, reduce(vector::CombiningKind::MAXSI, range[1]),
                   code.int32(mostScale));
  return arith::OrIOp::create(code, code.getLoc(), tooSmall, tooLarge);
}

/// The bf16 numbers behind the sixteen E2M1 codes, twice: the lookup takes five bits of an index,
/// of which the fifth is the next code's.
static Value getBF16Table(CodeBuilder &code) {
  SmallVector<int16_t> table;
  for (int copy = 0; copy < 2; ++copy)
    for (uint32_t sign : {0u, 0x8000u})
      for (float value : {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f})
        table.push_back(static_cast<int16_t>(llvm::bit_cast<uint32_t>(value) >> 16 | sign));
  auto type = VectorType::get({32}, code.getI16Type());
  return arith::ConstantOp::create(code, code.getLoc(),
                                   DenseElementsAttr::get(type, ArrayRef<int16_t>(table)));
}

/// What a row's scale adds to the exponent of its bf16 numbers, in both words of the row.
static Value getExponentSteps(CodeBuilder &code, Value scaleBytes) {
  Value wide = arith::ExtUIOp::create(code, code.getLoc(), code.intVector(panelRows), scaleBytes);
  Value power = code.sub(wide, code.intSplat(127, panelRows));
  Value field = shiftLeft(code, power, 7);
  Value both = arith::OrIOp::create(code, code.getLoc(), bitAnd(code, field, 0xffff),
                                    shiftLeft(code, field, 16));
  return bitcastTo(code, both, code.getI16Type());
}

std::pair<Value, Value> TileProduct::convertBlock(CodeBuilder &code, Value panel, int64_t side,
                                                  Value block, Value least, Value most) const {
  Location loc = code.getLoc();
  Value base = weight.getBlockBase(code, panel, block);
  Value scaleBytes = weight.loadScaleBytes(code, base);
  Value steps = getExponentSteps(code, scaleBytes);
  Value table = getBF16Table(code);
  auto words = cast<VectorType>(steps.getType());
  for (int64_t vector = 0; vector < 4; ++vector) {
    Value loaded = weight.loadWords(code, base, vector);
    for (int64_t nibble = 0; nibble < 4; ++nibble) {
      Value codes = shiftRight(code, loaded, 4 * nibble);
      Value unit = LLVM::CallIntrinsicOp::create(
                       code, loc, words, code.getStringAttr("llvm.x86.avx512.permvar.hi.512"),
                       ValueRange{table, codes})
                       .getResult(0);
      // Zero has no exponent to add to.
      Value isNumber =
          code.compare(arith::CmpIPredicate::ne, bitAnd(code, codes, 7), splat(code, words, 0));
      Value scaled = code.select(isNumber, code.add(unit, steps), unit);
      vector::StoreOp::create(
          code, loc, bitcastTo(code, scaled, code.getBF16Type()), slab,
          ValueRange{block, code.index(side), code.index(4 * vector + nibble), code.index(0)});
    }
  }
  return {arith::MinUIOp::create(code, loc, least, scaleBytes),
          arith::MaxUIOp::create(code, loc, most, scaleBytes)};
}

/// The last columns of a bf16 weight do not fill a tile: they get one of their own, with zeros
/// behind them.
void TileProduct::copyTail(CodeBuilder &code, const Pair &pair) const {
  int64_t rows = weight.getTailSlots() / 2;
  if (rows == 0)
    return;
  Value block = code.index(weight.getWholeBlocks());
  auto type = VectorType::get({blockColumns}, code.getBF16Type());
  Value zeros = arith::ConstantOp::create(code, code.getLoc(), code.getZeroAttr(type));
  for (int64_t side : {0, 1}) {
    Value base = weight.getBlockBase(code, pair.panels[side], block);
    auto store = [&](Value row, Value values) {
      vector::StoreOp::create(code, code.getLoc(), values, slab,
                              ValueRange{block, code.index(side), row, code.index(0)});
    };
    code.loop(0, rows, 1, [&](Value row) {
      store(row, vector::LoadOp::create(code, code.getLoc(), type, weight.getFlatStorage(),
                                        code.add(base, code.mul(row, blockColumns))));
    });
    code.loop(rows, tileTokens, 1, [&](Value row) { store(row, zeros); });
  }
}

//===------------------------------------------------------------------------------------------===//
// Products of tiles
//===------------------------------------------------------------------------------------------===//

static amx::TileType getOperandTile(CodeBuilder &code) {
  return amx::TileType::get({16, 32}, code.getBF16Type());
}
static amx::TileType getSumTile(CodeBuilder &code) {
  return amx::TileType::get({16, 16}, code.getF32Type());
}

/// A flat buffer as rows of `columns` elements.
static Value viewRows(CodeBuilder &code, Value flat, int64_t columns) {
  auto type = cast<MemRefType>(flat.getType());
  SmallVector<int64_t> sizes = {type.getDimSize(0) / columns, columns}, strides = {columns, 1};
  auto rows = MemRefType::get(sizes, type.getElementType());
  return memref::ReinterpretCastOp::create(code, code.getLoc(), rows, flat, /*offset=*/0, sizes,
                                           strides);
}

Value TileProduct::loadWeightTile(CodeBuilder &code, const Pair &pair, int64_t side, Value block,
                                  bool fromScratch) const {
  Value zero = code.index(0);
  if (fromScratch)
    return amx::TileLoadOp::create(code, code.getLoc(), getOperandTile(code), slab,
                                   ValueRange{block, code.index(side), zero, zero});
  Value rows = viewRows(code, weight.getFlatStorage(), blockColumns);
  Value row = code.divide(weight.getBlockBase(code, pair.panels[side], block), blockColumns);
  return amx::TileLoadOp::create(code, code.getLoc(), getOperandTile(code), rows,
                                 ValueRange{row, zero});
}

void TileProduct::multiply(CodeBuilder &code, const TokenBlock &block, const Pair &pair) const {
  Value count = code.divide(block.tokens, tileTokens);
  Value whole = code.mul(code.divide(count, 2), 2);
  code.loop(code.index(0), whole, 2,
            [&](Value tile) { multiplyTiles(code, block, pair, tile, 2); });
  code.loop(whole, count, 1, [&](Value tile) { multiplyTiles(code, block, pair, tile, 1); });
}

void TileProduct::multiplyTiles(CodeBuilder &code, const TokenBlock &block, const Pair &pair,
                                Value firstTile, int64_t tileCount) const {
  Location loc = code.getLoc();
  Value zero = code.index(0);
  SmallVector<Value> sums;
  for (int64_t i = 0; i < 2 * tileCount; ++i)
    sums.push_back(amx::TileZeroOp::create(code, loc, getSumTile(code)));

  auto step = [&](Value index, ValueRange carried, bool fromScratch) {
    SmallVector<Value> result(carried), weights;
    for (int64_t side : {0, 1})
      weights.push_back(loadWeightTile(code, pair, side, index, fromScratch));
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t i = 0; i < tileCount; ++i) {
        Value x = amx::TileLoadOp::create(
            code, loc, getOperandTile(code), tiles,
            ValueRange{code.index(part), code.add(firstTile, i), index, zero, zero});
        for (int64_t side : {0, 1}) {
          Value &sum = result[2 * i + side];
          sum = amx::TileMulFOp::create(code, loc, getSumTile(code), x, weights[side], sum);
        }
      }
    return result;
  };
  bool converted = weight.isMXFP4();
  if (weight.getWholeBlocks() > 0)
    sums =
        code.loop(code.index(0), code.index(weight.getWholeBlocks()), 1, sums,
                  [&](Value index, ValueRange carried) { return step(index, carried, converted); });
  if (weight.getTailSlots())
    sums = step(code.index(weight.getWholeBlocks()), sums, /*fromScratch=*/true);

  Value rows = viewRows(code, block.sums, panelRows);
  for (int64_t i = 0; i < tileCount; ++i)
    for (int64_t side : {0, 1}) {
      Value token = code.mul(code.add(firstTile, i), tileTokens);
      Value row = code.add(code.mul(pair.sums[side], block.tokens), token);
      amx::TileStoreOp::create(code, loc, rows, ValueRange{row, zero}, sums[2 * i + side]);
    }
}
