#include "IntegerProduct.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::moec;

/// Added to twice an E2M1 number, so that what the table holds has no sign.
constexpr int64_t weightOffset = 12;
/// The largest integer: 85 * 128 + 63. Eight sums of two products of at most 24 * 85 fit 16 bits.
constexpr int64_t largest = 85 * 128 + 63;
/// The step of a block whose largest number is not above this has few digits in f32, or none: it is a
/// power of two, which needs none, a 4,096th of that below the largest number. Such numbers are enlarged
/// before they are counted in steps.
constexpr double smallNumber = 0x1p-100, enlargement = 0x1p64, stepsOfPower = 0x1p12;
/// Bytes of a block of a token: two planes of 32.
constexpr int64_t planeBytes = 2 * blockColumns;

bool IntegerProduct::isWanted(Type weight, Type input, const TargetDescription &target) {
  return isa<moe::BlockTensorType>(weight) && input.isBF16() && target.has("avx2") &&
         target.getVectorBytes() == 32 && !target.batchInvariant;
}

void IntegerProduct::allocate(ScratchAllocator &allocator, MLIRContext *context) {
  Builder builder(context);
  int64_t pieces = weight.getBlocks() * fewTokens;
  planes = allocator.allocate({pieces * planeBytes}, builder.getI8Type());
  steps = allocator.allocate({pieces}, builder.getF32Type());
  offsets = allocator.allocate({pieces}, builder.getI32Type());
}

//===------------------------------------------------------------------------------------------===//
// Activations
//===------------------------------------------------------------------------------------------===//

void IntegerProduct::quantize(CodeBuilder &code, const TokenBlock &block) const {
  Value pieces = code.mul(block.tokens, weight.getBlocks());
  code.loop(code.index(0), pieces, 1, [&](Value piece) {
    quantizeBlock(code, block.rows, code.mul(piece, blockColumns), piece);
  });
}

void IntegerProduct::quantizeBlock(CodeBuilder &code, Value rows, Value from, Value piece) const {
  Location loc = code.getLoc();
  int64_t lanes = panelRows;
  SmallVector<Value> halves = {code.loadFloats(rows, from, lanes),
                               code.loadFloats(rows, code.add(from, lanes), lanes)};
  auto magnitude = [&](Value x) -> Value { return math::AbsFOp::create(code, loc, x); };
  Value most = code.maximumLane(code.maximum(magnitude(halves[0]), magnitude(halves[1])));
  // Zero, unless a number is infinite or none at all: that must show in the result.
  Value probe =
      code.sumLanes(code.add(code.sub(halves[0], halves[0]), code.sub(halves[1], halves[1])));
  Value isUsual = code.compare(arith::CmpFPredicate::OGT, most, code.float32(smallNumber));
  Value power = bitcastTo(code, code.mul(most, code.float32(enlargement)), code.getI32Type());
  power = bitcastTo(code, code.both(power, code.int32(0x7f800000)), code.getF32Type());
  auto choose = [&](Value usual, Value small) { return code.select(isUsual, usual, small); };
  Value larger = choose(code.float32(1), code.float32(enlargement));
  // Infinite for a block of zeros, which then count as no numbers below.
  Value inverse = choose(code.divide(code.float32(largest), most),
                         code.divide(code.float32(stepsOfPower), power));
  Value smallHalf = code.mul(code.mul(power, code.float32(0.5 / stepsOfPower)),
                             code.float32(1 / enlargement));
  Value halfStep = choose(code.mul(most, code.float32(0.5 / largest)), smallHalf);
  code.storeFloat(code.add(halfStep, probe), steps, piece);

  SmallVector<int64_t> order;
  for (int64_t i = 0; i < lanes; i += 8)
    for (int64_t column : {0, 4, 1, 5, 2, 6, 3, 7})
      order.push_back(i + column);
  Value total = code.intSplat(0, lanes);
  for (int64_t half : {0, 1}) {
    Value x = vector::ShuffleOp::create(code, loc, halves[half], halves[half], order);
    Value scaled = code.mul(code.mul(x, code.broadcast(larger, lanes)),
                            code.broadcast(inverse, lanes));
    Value isNumber = code.compare(arith::CmpFPredicate::OEQ, scaled, scaled);
    scaled = code.select(isNumber, scaled, code.floatSplat(0, lanes));
    Value rounded = math::RoundEvenOp::create(code, loc, scaled);
    Value integer = arith::FPToSIOp::create(code, loc, code.intVector(lanes), rounded);
    total = code.add(total, integer);
    // integer = 128 * high + low, low in [-64, 63].
    Value high = arith::ShRSIOp::create(code, loc, code.add(integer, code.intSplat(64, lanes)),
                                        code.intSplat(7, lanes));
    Value low = code.sub(integer, shiftLeft(code, high, 7));
    auto bytes = VectorType::get({lanes}, code.getI8Type());
    Value parts[2] = {high, low};
    for (int64_t plane : {0, 1}) {
      Value at = code.add(code.mul(piece, planeBytes), plane * blockColumns + half * lanes);
      vector::StoreOp::create(code, loc, arith::TruncIOp::create(code, loc, bytes, parts[plane]),
                              planes, at);
    }
  }
  Value sum = vector::ReductionOp::create(code, loc, vector::CombiningKind::ADD, total);
  code.storeInt(code.mul(sum, code.int32(weightOffset)), offsets, piece);
}

//===------------------------------------------------------------------------------------------===//
// Products
//===------------------------------------------------------------------------------------------===//

/// Asks for the block that comes some iterations later; hardware alone stops at the borders of
/// pages.
static void prefetch(CodeBuilder &code, Value flat, Value base) {
  constexpr int64_t distance = 12 * mxfp4PanelBytes;
  int64_t size = cast<MemRefType>(flat.getType()).getDimSize(0);
  Value last = code.index(size - mxfp4PanelBytes);
  Value at = code.minimum(code.add(base, distance), last);
  for (int64_t line = 0; line < mxfp4PanelBytes; line += 64)
    memref::PrefetchOp::create(code, code.getLoc(), flat, code.add(at, line), /*isWrite=*/false,
                               /*localityHint=*/3, /*isDataCache=*/true);
}

void IntegerProduct::build(CodeBuilder &code, const TokenBlock &block, Value firstPanel,
                           Value firstSum, Value count) const {
  Location loc = code.getLoc();
  auto buildPanel = [&](Value panel, Value sum, Value token) {
    SmallVector<Value> sums(2, code.floatSplat(0, 8));
    sums = code.loop(code.index(0), code.index(weight.getBlocks()), 1, sums,
                     [&](Value index, ValueRange carried) {
                       Value base = weight.getBlockBase(code, panel, index);
                       prefetch(code, weight.getFlatStorage(), base);
                       Value piece = code.add(code.mul(index, block.tokens), token);
                       Value scales = weight.loadScales(code, base);
                       Value step = code.broadcast(code.loadFloat(steps, piece), 8);
                       Value offset = code.broadcast(code.loadInt(offsets, piece), 8);
                       auto [low, high] = sumBlock(code, base, code.mul(piece, planeBytes));
                       Value integers[2] = {low, high};
                       SmallVector<Value> result;
                       for (int64_t half : {0, 1}) {
                         Value integer = code.sub(integers[half], offset);
                         Value number =
                             arith::SIToFPOp::create(code, loc, code.floatVector(8), integer);
                         Value scale = vector::ExtractStridedSliceOp::create(
                             code, loc, scales, ArrayRef<int64_t>{8 * half}, ArrayRef<int64_t>{8},
                             ArrayRef<int64_t>{1});
                         result.push_back(code.fma(code.mul(number, step), scale, carried[half]));
                       }
                       return result;
                     });
    Value at = code.mul(code.add(code.mul(sum, block.tokens), token), panelRows);
    for (int64_t half : {0, 1})
      code.storeFloats(sums[half], block.sums, code.add(at, 8 * half));
  };
  code.loop(code.index(0), count, 1, [&](Value i) {
    code.loop(code.index(0), block.tokens, 1, [&](Value token) {
      buildPanel(code.add(firstPanel, i), code.add(firstSum, i), token);
    });
  });
}

static Value callIntrinsic(CodeBuilder &code, StringRef name, VectorType result, Value a, Value b) {
  return LLVM::CallIntrinsicOp::create(code, code.getLoc(), result, code.getStringAttr(name),
                                       ValueRange{a, b})
      .getResult(0);
}

/// Twice the E2M1 numbers of 32 codes, plus the offset.
static Value lookUp(CodeBuilder &code, Value codes) {
  auto bytes = VectorType::get({32}, code.getI8Type());
  SmallVector<int8_t> table;
  for (int lane = 0; lane < 2; ++lane)
    for (int sign : {1, -1})
      for (int twice : {0, 1, 2, 3, 4, 6, 8, 12})
        table.push_back(static_cast<int8_t>(weightOffset + sign * twice));
  Value constant = arith::ConstantOp::create(
      code, code.getLoc(), DenseElementsAttr::get(bytes, ArrayRef<int8_t>(table)));
  return callIntrinsic(code, "llvm.x86.avx2.pshuf.b", bytes, constant, codes);
}

/// Four activations of a plane, for each of eight rows.
Value IntegerProduct::loadBytes(CodeBuilder &code, Value at, int64_t offset) const {
  auto four = VectorType::get({4}, code.getI8Type());
  Value bytes = vector::LoadOp::create(code, code.getLoc(), four, planes, code.add(at, offset));
  Value word = code.lane(bitcastTo(code, bytes, code.getI32Type()), 0);
  return bitcastTo(code, code.broadcast(word, 8), code.getI8Type());
}

std::pair<Value, Value> IntegerProduct::sumBlock(CodeBuilder &code, Value blockBase,
                                                 Value at) const {
  Location loc = code.getLoc();
  auto bytes = VectorType::get({32}, code.getI8Type());
  auto words = VectorType::get({16}, code.getI16Type());
  Value zero = arith::ConstantOp::create(code, loc, code.getZeroAttr(words));
  // By half and plane. Both halves of a vector are done at once, so that activations are not kept
  // in registers.
  Value sums[2][2] = {{zero, zero}, {zero, zero}};
  for (int64_t j = 0; j < 4; ++j) {
    Value packed[2];
    for (int64_t half : {0, 1}) {
      Value loaded = vector::LoadOp::create(code, loc, bytes, weight.getFlatStorage(),
                                            code.add(blockBase, 64 * j + 32 * half));
      packed[half] = bitcastTo(code, loaded, code.getI32Type());
    }
    for (int64_t group : {0, 1}) {
      Value weights[2];
      for (int64_t half : {0, 1}) {
        Value codes = bitAnd(code, shiftRight(code, packed[half], 4 * group), 0x0f0f0f0f);
        weights[half] = lookUp(code, bitcastTo(code, codes, code.getI8Type()));
      }
      for (int64_t plane : {0, 1}) {
        Value x = loadBytes(code, at, plane * blockColumns + 8 * j + 4 * group);
        for (int64_t half : {0, 1}) {
          Value products =
              callIntrinsic(code, "llvm.x86.avx2.pmadd.ub.sw", words, weights[half], x);
          sums[half][plane] = code.add(sums[half][plane], products);
        }
      }
    }
  }
  // Neighbouring words belong to one row; a high byte counts 128 times.
  auto addPairs = [&](Value sum, int64_t factor) {
    Value factors = arith::ConstantOp::create(
        code, loc, DenseElementsAttr::get(words, code.getI16IntegerAttr(factor)));
    return callIntrinsic(code, "llvm.x86.avx2.pmadd.wd", code.intVector(8), sum, factors);
  };
  auto join = [&](ArrayRef<Value> planesOfHalf) {
    return code.add(addPairs(planesOfHalf[0], 128), addPairs(planesOfHalf[1], 1));
  };
  return {join(sums[0]), join(sums[1])};
}
