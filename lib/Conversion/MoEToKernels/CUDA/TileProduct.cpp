#include "TileProduct.h"

#include "../VectorCode.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::moec;

bool TileProduct::supports(Type weight) {
  if (moe::getLayout(weight))
    return false;
  if (auto blocks = dyn_cast<moe::BlockTensorType>(weight))
    return moe::getLogicalShape(weight).back() % depth == 0;
  auto tensor = dyn_cast<RankedTensorType>(weight);
  return tensor && tensor.hasStaticShape() &&
         (tensor.getElementType().isF32() || tensor.getElementType().isBF16() ||
          tensor.getElementType().isF16());
}

TileProduct::TileProduct(BlockCode &code, Type weight)
    : code(code), isMXFP4(isa<moe::BlockTensorType>(weight)) {
  ArrayRef<int64_t> shape = moe::getLogicalShape(weight);
  rows = shape[shape.size() - 2];
  columns = shape.back();
  inputTile = code.allocateShared({tileRows, pitch}, code.getF32Type());
  weightTile = code.allocateShared({tileColumns, pitch}, code.getF32Type());
  loadRow = code.divide(code.thread(), 4);
  loadColumn = code.mul(code.remainder(code.thread(), 4), perLoad);
  firstRow = code.mul(code.divide(code.thread(), tileColumns / perThread), perThread);
  firstColumn = code.mul(code.remainder(code.thread(), tileColumns / perThread), perThread);
}

void TileProduct::setWeight(ValueRange buffers, Value ofExpert) {
  storage.assign(buffers.begin(), buffers.end());
  expert = ofExpert;
}

SmallVector<Value> TileProduct::loadPart(Value k, Value condition,
                                         function_ref<Value(Value k)> load) {
  SmallVector<Value> zeros(perLoad, code.float32(0));
  SmallVector<Type> types(perLoad, code.getF32Type());
  Value first = code.add(k, loadColumn);
  return code.choose(
      condition, types,
      [&] {
        SmallVector<Value> values;
        for (int64_t i = 0; i < perLoad; ++i) {
          Value at = code.add(first, i);
          if (columns % depth == 0) {
            values.push_back(load(at));
            continue;
          }
          values.push_back(code.choose(code.isWithin(at, code.index(columns)), {code.getF32Type()},
                                       [&]() -> SmallVector<Value> { return {load(at)}; },
                                       [&]() -> SmallVector<Value> { return {zeros[0]}; })[0]);
        }
        return values;
      },
      [&] { return zeros; });
}

Value TileProduct::computeNormFactor(const Tile &tile, Value inputRow, Value isRow) {
  Value sum = code.loop(code.index(0), code.index(columns), depth, {code.float32(0)},
                        [&](Value k, ValueRange carried) -> SmallVector<Value> {
                          SmallVector<Value> part = loadPart(k, isRow, [&](Value at) {
                            return code.loadFloat(tile.input, {inputRow, at});
                          });
                          Value sum = carried[0];
                          for (Value x : part)
                            sum = code.fma(x, x, sum);
                          return {sum};
                        })[0];
  Value mean = code.divide(code.sumOverLanes(sum, 4), code.float32(double(columns)));
  Value root = math::SqrtOp::create(code, code.getLoc(),
                                    code.add(mean, code.float32(normEpsilon)));
  return code.divide(code.float32(1), root);
}

void TileProduct::loadInput(const Tile &tile, Value k, Value inputRow, Value isRow, Value factor) {
  Type element = cast<MemRefType>(tile.input.getType()).getElementType();
  SmallVector<Value> part = loadPart(k, isRow, [&](Value at) {
    Value x = code.loadFloat(tile.input, {inputRow, at});
    if (!factor)
      return x;
    Value scaled = code.mul(code.mul(x, factor), code.loadFloat(normWeight, at));
    return roundThrough(code, scaled, element);
  });
  for (auto [i, value] : llvm::enumerate(part))
    code.storeFloat(value, inputTile, {loadRow, code.add(loadColumn, i)});
}

/// Eight codes as f32, times their block's scale.
SmallVector<Value> TileProduct::loadCodes(Value k, Value weightRow) {
  Location loc = code.getLoc();
  Value block = code.divide(k, depth);
  SmallVector<Value> place;
  if (expert)
    place.push_back(expert);
  place.append({weightRow, block});
  Value scaleByte = memref::LoadOp::create(code, loc, storage[1], place);
  Value exponent = arith::ExtUIOp::create(code, loc, code.getI32Type(), scaleByte);
  auto isByte = [&](int64_t value) {
    return code.compare(arith::CmpIPredicate::eq, exponent, code.int32(value));
  };
  // 2^(byte - 127): byte 0 is subnormal, byte 255 is NaN.
  Value bits = arith::ShLIOp::create(code, loc, exponent, code.int32(23));
  bits = code.select(isByte(0), code.int32(0x00400000), bits);
  bits = code.select(isByte(255), code.int32(0x7fc00000), bits);
  Value scale = bitcastTo(code, bits, code.getF32Type());
  // A code's exponent and mantissa, moved to where f32 has them, are 2^-126 of its value.
  Value shift = code.float32(0x1p126);
  SmallVector<Value> values;
  for (int64_t i = 0; i < perLoad / 2; ++i) {
    // Codes lie as [.., N, K / 2] or as [.., N, K / 32, 16].
    SmallVector<Value> at(place);
    Value byte = code.add(code.divide(loadColumn, 2), i);
    if (cast<MemRefType>(storage[0].getType()).getRank() > static_cast<int64_t>(place.size()))
      at.push_back(byte);
    else
      at.back() = code.add(code.mul(block, depth / 2), byte);
    Value pair = memref::LoadOp::create(code, loc, storage[0], at);
    Value codes = arith::ExtUIOp::create(code, loc, code.getI32Type(), pair);
    for (int64_t nibble : {0, 4}) {
      auto move = [&](int64_t mask, int64_t left) -> Value {
        Value masked = arith::AndIOp::create(code, loc, codes, code.int32(mask << nibble));
        return arith::ShLIOp::create(code, loc, masked, code.int32(left - nibble));
      };
      Value number = arith::OrIOp::create(code, loc, move(7, 22), move(8, 28));
      Value magnitude = code.mul(bitcastTo(code, number, code.getF32Type()), shift);
      values.push_back(code.mul(magnitude, scale));
    }
  }
  return values;
}

void TileProduct::loadWeight(Value k, Value weightRow, Value isColumn) {
  SmallVector<Value> part;
  if (isMXFP4) {
    SmallVector<Type> types(perLoad, code.getF32Type());
    part = code.choose(
        isColumn, types, [&] { return loadCodes(k, weightRow); },
        [&] { return SmallVector<Value>(perLoad, code.float32(0)); });
  } else {
    part = loadPart(k, isColumn, [&](Value at) {
      SmallVector<Value> place;
      if (expert)
        place.push_back(expert);
      place.append({weightRow, at});
      return code.loadFloat(storage[0], place);
    });
  }
  for (auto [i, value] : llvm::enumerate(part))
    code.storeFloat(value, weightTile, {loadRow, code.add(loadColumn, i)});
}

SmallVector<Value> TileProduct::multiply(ValueRange sums) {
  return code.loop(code.index(0), code.index(depth), 1, sums,
                   [&](Value k, ValueRange carried) -> SmallVector<Value> {
                     SmallVector<Value> left, right, next;
                     for (int64_t i = 0; i < perThread; ++i) {
                       left.push_back(code.loadFloat(inputTile, {code.add(firstRow, i), k}));
                       right.push_back(code.loadFloat(weightTile, {code.add(firstColumn, i), k}));
                     }
                     for (int64_t i = 0; i < perThread; ++i)
                       for (int64_t j = 0; j < perThread; ++j)
                         next.push_back(code.fma(left[i], right[j], carried[i * perThread + j]));
                     return next;
                   });
}

void TileProduct::build(const Tile &tile) {
  Value isRow = code.isWithin(loadRow, tile.rows);
  Value isColumn = code.isWithin(loadRow, tile.columns);
  // Behind the tile's end row 0 stands in, and is not read.
  Value inputRow = tile.inputRow(code.select(isRow, loadRow, code.index(0)));
  Value weightRow = tile.weightRow(code.select(isColumn, loadRow, code.index(0)));
  Value factor = normWeight ? computeNormFactor(tile, inputRow, isRow) : Value();
  SmallVector<Value> zeros(perThread * perThread, code.float32(0));
  SmallVector<Value> sums =
      code.loop(code.index(0), code.index(columns), depth, zeros,
                [&](Value k, ValueRange carried) -> SmallVector<Value> {
                  loadInput(tile, k, inputRow, isRow, factor);
                  loadWeight(k, weightRow, isColumn);
                  code.barrier();
                  SmallVector<Value> next = multiply(carried);
                  code.barrier();
                  return next;
                });
  Value isMine = code.isWithin(firstColumn, tile.columns);
  for (int64_t i = 0; i < perThread; ++i) {
    Value row = code.add(firstRow, i);
    code.when(code.both(code.isWithin(row, tile.rows), isMine), [&] {
      tile.store(row, firstColumn, ArrayRef(sums).slice(i * perThread, perThread));
    });
  }
}
