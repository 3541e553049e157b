//===- GroupedLinear.cpp - MXFP4 experts on Hopper, converted on the way to shared memory -----===//
//
// A block computes 64 routed rows times 128 columns of one expert. Its threads gather rows of the
// input and turn codes into bf16, both into shared memory as products of warpgroups want them; the two
// warpgroups multiply 64 columns each. Three slots: while one is multiplied the next is filled, and
// what goes into the one after is on its way in registers.
//
// A code's exponent and mantissa, moved to where bf16 has them, are 2^-126 of its value; a factor for
// each block of 32, made of two powers of two, brings the value to its size. Both products are exact.
//
//===------------------------------------------------------------------------------------------===//

#include "../ExpertTiles.h"
#include "../Strategies.h"
#include "HopperCode.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 256, tileRows = 64, tileColumns = 128, columnsOfGroup = 64;
constexpr int64_t depth = 64, bytesOfRow = depth * 2, slots = 3;
constexpr int64_t leftBytes = tileRows * bytesOfRow, rightBytes = tileColumns * bytesOfRow;
constexpr int64_t slotBytes = leftBytes + rightBytes, sharedBytes = slots * slotBytes;

class ExpertsBlock {
public:
  ExpertsBlock(HopperCode &code, moe::GroupedLinearOp op, ValueRange operands, Value result)
      : code(code), tiles(code, op, operands, result, tileRows), op(op),
        elements(moe::getLogicalShape(op.getWeight().getType()).back()),
        product(code, code.getBF16Type(), columnsOfGroup) {}

  void build(Value workgroup) {
    int64_t columnTiles = llvm::divideCeil(tiles.getColumns(), tileColumns);
    auto [expert, tile] = tiles.find(code.divide(workgroup, columnTiles));
    firstColumn = code.mul(code.remainder(workgroup, columnTiles), tileColumns);
    code.when(tiles.isExpert(expert), [&, expert = expert, tile = tile] {
      tiles.enter(expert, tile);
      buildTile();
    });
  }

private:
  /// What a thread has on its way for one slot: two pieces of 16 bytes of the input and the codes
  /// and the scale of one block of 32.
  struct Loads {
    Value left[2], codes, scale;
    SmallVector<Value> get() const { return {left[0], left[1], codes, scale}; }
    static Loads from(ValueRange values) { return {{values[0], values[1]}, values[2], values[3]}; }
  };

  void buildTile() {
    findPlaces();
    int64_t steps = llvm::divideCeil(elements, depth);
    SmallVector<Value> carried = load(code.index(0)).get();
    carried.append({code.int32(0), product.zeros()});
    Value base = code.toAddress(code.dynamicShared(code.int32(0)));
    Value group = code.warpgroupNumber();
    Value right = code.plus(code.times(group, columnsOfGroup * bytesOfRow), leftBytes);
    SmallVector<Value> done = code.loop(
        code.index(0), code.index(steps), 1, carried,
        [&](Value step, ValueRange carried) -> SmallVector<Value> {
          Value slot = carried[4], offset = code.times(slot, slotBytes);
          store(Loads::from(carried), offset);
          SmallVector<Value> next = load(code.add(step, 1)).get();
          // What was written is now for the warpgroups' products to read.
          NVVM::FenceProxyOp::create(
              code, code.getLoc(), NVVM::ProxyKind::async_shared,
              NVVM::SharedSpaceAttr::get(code.getContext(), NVVM::SharedSpace::shared_cta));
          code.barrier();
          product.fence();
          Value left = code.add(base, offset);
          Value sums = product.multiply(carried[5], left, code.add(left, right));
          product.commit();
          // The slot that is written next was read two products ago, by the other warpgroup, too: it
          // has passed the barrier above since.
          product.wait(1);
          Value following = code.plus(slot, 1);
          following = code.select(code.isEqual(following, slots), code.int32(0), following);
          next.append({following, sums});
          return next;
        });
    product.wait(0);
    storeResults(done[5], group);
  }

  /// Where this thread's pieces come from and go to.
  void findPlaces() {
    Value thread = code.thread();
    for (int64_t i = 0; i < 2; ++i) {
      Value piece = code.add(thread, i * threads);
      Value row = code.divide(piece, 8);
      leftChunk = code.remainder(piece, 8); // the same for both: rows are 32 apart
      isRow[i] = code.isWithin(row, tiles.countRows());
      inputRow[i] = code.choose(
          isRow[i], {code.getIndexType()},
          [&]() -> SmallVector<Value> { return {tiles.getInputRow(row)}; },
          [&]() -> SmallVector<Value> { return {code.index(0)}; })[0];
      leftPlace[i] = getPlace(row, leftChunk);
    }
    Value column = code.divide(thread, 2);
    half = code.remainder(thread, 2);
    Value j = code.add(firstColumn, column);
    isColumn = code.isWithin(j, code.index(tiles.getColumns()));
    weightRow = tiles.getWeightRow(code.select(isColumn, j, code.index(0)));
    for (int64_t i = 0; i < 4; ++i)
      rightPlace[i] = code.plus(getPlace(column, code.add(code.mul(half, 4), i)), leftBytes);
  }

  /// The offset (i32) of a piece of 16 bytes: in rows of 128 bytes, its number within the row
  /// exchanged as the row's number says.
  Value getPlace(Value row, Value chunk) {
    Value swizzled = arith::XOrIOp::create(code, code.getLoc(), chunk, code.remainder(row, 8));
    return code.toInt32(code.add(code.mul(row, bytesOfRow), code.mul(swizzled, 16)));
  }

  Value zeroWords() {
    return arith::ConstantOp::create(code, code.getLoc(),
                                     code.getZeroAttr(code.intVector(4)));
  }

  Value loadWords(Value memref, ValueRange place, int64_t count) {
    auto type = cast<MemRefType>(memref.getType());
    auto vector = VectorType::get({count}, type.getElementType());
    Value loaded = vector::LoadOp::create(code, code.getLoc(), vector, memref, place,
                                          /*nontemporal=*/false, llvm::MaybeAlign(16));
    return vector::BitCastOp::create(code, code.getLoc(), code.intVector(4), loaded);
  }

  Loads load(Value step) {
    Loads loads;
    Value k = code.add(code.mul(step, depth), code.mul(leftChunk, 8));
    Value isInside = code.isWithin(k, code.index(elements));
    for (int64_t i = 0; i < 2; ++i)
      loads.left[i] = code.choose(
          code.both(isRow[i], isInside), {code.intVector(4)},
          [&]() -> SmallVector<Value> {
            return {loadWords(tiles.getInput(), {inputRow[i], k}, 8)};
          },
          [&]() -> SmallVector<Value> { return {zeroWords()}; })[0];
    Value block = code.add(code.mul(step, 2), half);
    Value isBlock = code.isWithin(block, code.index(elements / 32));
    SmallVector<Value> found = code.choose(
        code.both(isColumn, isBlock), {code.intVector(4), code.getI32Type()},
        [&]() -> SmallVector<Value> { return loadBlock(block); },
        [&]() -> SmallVector<Value> { return {zeroWords(), code.int32(127)}; });
    loads.codes = found[0];
    loads.scale = found[1];
    return loads;
  }

  SmallVector<Value> loadBlock(Value block) {
    Location loc = code.getLoc();
    Value codes = tiles.getStorage()[0], scales = tiles.getStorage()[1];
    SmallVector<Value> place = {tiles.getExpert(), weightRow, block};
    Value byte = memref::LoadOp::create(code, loc, scales, place);
    // Codes lie as [E, N, K / 2] or as [E, N, K / 32, 16].
    if (cast<MemRefType>(codes.getType()).getRank() == 4)
      place.push_back(code.index(0));
    else
      place[2] = code.mul(block, 16);
    return {loadWords(codes, place, 16),
            arith::ExtUIOp::create(code, loc, code.getI32Type(), byte).getResult()};
  }

  void storePiece(Value words, Value offset) {
    LLVM::StoreOp::create(code, code.getLoc(), words, code.dynamicShared(offset),
                          /*alignment=*/16);
  }

  void store(const Loads &loads, Value offset) {
    for (int64_t i = 0; i < 2; ++i)
      storePiece(loads.left[i], code.add(offset, leftPlace[i]));
    auto [first, second] = getFactors(loads.scale);
    for (int64_t i = 0; i < 4; ++i) {
      // Eight codes of a word are sixteen bytes of bf16.
      Value word = static_cast<CodeBuilder &>(code).lane(loads.codes, i);
      SmallVector<Value> pairs;
      for (int64_t byte = 0; byte < 4; ++byte)
        pairs.push_back(convertPair(word, byte, first, second));
      storePiece(code.fromLanes(pairs), code.add(offset, rightPlace[i]));
    }
  }

  /// 2^(byte - 1) as a product of two bf16, each twice: the second is 1 for bytes up to 128, and NaN
  /// for 255.
  std::pair<Value, Value> getFactors(Value byte) {
    Location loc = code.getLoc();
    auto shift = [&](Value value, int64_t bits) -> Value {
      return arith::ShLIOp::create(code, loc, value, code.int32(bits));
    };
    Value low = code.minimum(byte, code.int32(128));
    Value firstBits = shift(code.plus(low, 126), 7);
    Value secondBits = shift(code.plus(code.sub(byte, low), 127), 7);
    secondBits = code.select(code.isEqual(byte, 255), code.int32(0x7fc0), secondBits);
    auto twice = [&](Value bits) {
      return toPair(arith::OrIOp::create(code, loc, bits, shift(bits, 16)));
    };
    return {twice(firstBits), twice(secondBits)};
  }

  Value toPair(Value word) {
    return LLVM::BitcastOp::create(code, code.getLoc(), VectorType::get({2}, code.getBF16Type()),
                                   word);
  }

  /// Two codes of a byte as bf16: the low four bits come first.
  Value convertPair(Value word, int64_t byte, Value first, Value second) {
    Location loc = code.getLoc();
    auto move = [&](Value value, int64_t left) -> Value {
      if (left >= 0)
        return arith::ShLIOp::create(code, loc, value, code.int32(left));
      return arith::ShRUIOp::create(code, loc, value, code.int32(-left));
    };
    // The low code's magnitude at bit 6 and its sign at bit 15; the high one's 16 bits further up.
    Value low = code.andBits(move(word, 6 - 8 * byte), 7 << 6);
    Value lowSign = code.andBits(move(word, 12 - 8 * byte), 1 << 15);
    Value high = code.andBits(move(word, 18 - 8 * byte), 7 << 22);
    Value highSign = code.andBits(move(word, 24 - 8 * byte), int64_t(1) << 31);
    auto join = [&](Value a, Value b) -> Value {
      return arith::OrIOp::create(code, loc, a, b);
    };
    Value bits = join(join(low, lowSign), join(high, highSign));
    Value scaled = LLVM::FMulOp::create(code, loc, toPair(bits), first);
    scaled = LLVM::FMulOp::create(code, loc, scaled, second);
    return LLVM::BitcastOp::create(code, loc, code.getI32Type(), scaled);
  }

  void storeResults(Value sums, Value group) {
    Value columnOfGroup = code.add(firstColumn, code.toIndex(code.times(group, columnsOfGroup)));
    for (int64_t halfRow = 0; halfRow < 2; ++halfRow) {
      Value row = code.toIndex(product.getRow(halfRow));
      code.when(code.isWithin(row, tiles.countRows()), [&] {
        product.forEachPair(sums, halfRow, [&](Value column, Value first, Value second) {
          tiles.store(row, code.add(columnOfGroup, code.toIndex(column)), {first, second});
        });
      });
    }
  }

  HopperCode &code;
  ExpertTiles tiles;
  moe::GroupedLinearOp op;
  int64_t elements;
  WarpgroupProduct product;
  Value firstColumn, leftChunk, half, isColumn, weightRow;
  Value isRow[2], inputRow[2], leftPlace[2], rightPlace[4];
};

class HopperGroupedLinearStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.grouped_linear.wgmma"; }
  StringRef getOpName() const override { return moe::GroupedLinearOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto linear = dyn_cast<moe::GroupedLinearOp>(op);
    if (!linear || target.cpu != "sm_90a")
      return false;
    auto weight = dyn_cast<moe::BlockTensorType>(linear.getWeight().getType());
    if (!weight || moe::getLayout(weight))
      return false;
    ArrayRef<int64_t> shape = moe::getLogicalShape(weight);
    // Rows of the input are read in whole 16 bytes; a thread stores two neighbouring columns.
    return linear.getInput().getType().getElementType().isBF16() && shape[2] % 32 == 0 &&
           shape[1] % 2 == 0;
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 2; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }
  int64_t getSharedBytes(Operation *, const TargetDescription &) const override {
    return sharedBytes;
  }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return ExpertTiles::count(builder, cast<moe::GroupedLinearOp>(op), tileRows, tileColumns);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    HopperCode code(op->getLoc(), builder, threads);
    ExpertsBlock(code, cast<moe::GroupedLinearOp>(op), operands, results[0]).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getHopperGroupedLinearStrategy() {
  static const HopperGroupedLinearStrategy strategy;
  return strategy;
}
