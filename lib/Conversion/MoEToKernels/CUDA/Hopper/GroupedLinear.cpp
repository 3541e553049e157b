//===- GroupedLinear.cpp - MXFP4 experts on Hopper, converted on the way to shared memory -----===//
//
// A block computes 64 routed rows times 128 columns of one expert. Its threads gather rows of the
// input and turn codes into bf16, both in shared memory as products of warpgroups want them; the two
// warpgroups multiply 64 columns each. Rows and codes are copied three steps of k ahead; what they
// become is multiplied while the next step is converted.
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
constexpr int64_t depth = 64, bytesOfRow = depth * 2, ahead = 3;
/// Slots of copied rows and codes: those on their way, and the two that products may still read.
constexpr int64_t copySlots = ahead + 2, productSlots = 3;
constexpr int64_t leftBytes = tileRows * bytesOfRow, rightBytes = tileColumns * bytesOfRow;
constexpr int64_t codeBytes = threads * 16;
constexpr int64_t rightOffset = copySlots * leftBytes;
constexpr int64_t codesOffset = rightOffset + productSlots * rightBytes;
constexpr int64_t sharedBytes = codesOffset + copySlots * codeBytes;

class ExpertsBlock {
public:
  ExpertsBlock(HopperCode &code, moe::GroupedLinearOp op, ValueRange operands, Value result)
      : code(code), tiles(code, op, operands, result, tileRows),
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
  void buildTile() {
    findPlaces();
    int64_t steps = llvm::divideCeil(elements, depth);
    // Scales are too small for copies: they wait in registers.
    SmallVector<Value> carried = {code.int32(0), code.int32(0), product.zeros()};
    for (int64_t step = 0; step < ahead; ++step) {
      copy(code.index(step), code.int32(step));
      carried.push_back(loadScale(code.index(step)));
    }
    Value base = code.toAddress(code.dynamicShared(code.int32(0)));
    Value group = code.warpgroupNumber();
    Value right = code.plus(code.times(group, columnsOfGroup * bytesOfRow), rightOffset);
    SmallVector<Value> done = code.loop(
        code.index(0), code.index(steps), 1, carried,
        [&](Value step, ValueRange carried) -> SmallVector<Value> {
          Value copySlot = carried[0], productSlot = carried[1];
          NVVM::CpAsyncWaitGroupOp::create(code, code.getLoc(), ahead - 1);
          convert(copySlot, productSlot, carried[3]);
          // What was written is now for the warpgroups' products to read.
          NVVM::FenceProxyOp::create(
              code, code.getLoc(), NVVM::ProxyKind::async_shared,
              NVVM::SharedSpaceAttr::get(code.getContext(), NVVM::SharedSpace::shared_cta));
          code.barrier();
          // Both warpgroups have waited for the product before the last one: its slots are free.
          Value later = code.add(step, ahead);
          copy(later, advance(copySlot, ahead, copySlots));
          product.fence();
          Value left = code.add(base, code.times(copySlot, leftBytes));
          Value ofSlot = code.add(code.add(base, right), code.times(productSlot, rightBytes));
          Value sums = product.multiply(carried[2], left, ofSlot);
          product.commit();
          product.wait(1);
          SmallVector<Value> next = {advance(copySlot, 1, copySlots),
                                     advance(productSlot, 1, productSlots), sums};
          llvm::append_range(next, carried.drop_front(4));
          next.push_back(loadScale(later));
          return next;
        });
    product.wait(0);
    NVVM::CpAsyncWaitGroupOp::create(code, code.getLoc(), 0);
    storeResults(done[2], group);
  }

  /// A slot `distance` further in a ring of `count`.
  Value advance(Value slot, int64_t distance, int64_t count) {
    Value next = code.plus(slot, distance);
    Value wraps = code.compare(arith::CmpIPredicate::sge, next, code.int32(count));
    return code.select(wraps, code.plus(next, -count), next);
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
    row = code.add(code.mul(tiles.getExpert(), tiles.getColumns()), weightRow);
    for (int64_t i = 0; i < 4; ++i)
      rightPlace[i] = code.plus(getPlace(column, code.add(code.mul(half, 4), i)), rightOffset);
    codePlace = code.plus(code.times(code.threadNumber(), 16), codesOffset);
  }

  /// The offset (i32) of a piece of 16 bytes: in rows of 128 bytes, its number within the row
  /// exchanged as the row's number says.
  Value getPlace(Value row, Value chunk) {
    Value swizzled = arith::XOrIOp::create(code, code.getLoc(), chunk, code.remainder(row, 8));
    return code.toInt32(code.add(code.mul(row, bytesOfRow), code.mul(swizzled, 16)));
  }

  /// Begins to copy 16 bytes; zeros, and the address counts for nothing, where they are not there.
  void copyPiece(Value destination, Value memref, Value byte, Value isThere) {
    Value size = code.select(isThere, code.int32(16), code.int32(0));
    NVVM::CpAsyncOp::create(code, code.getLoc(), code.dynamicShared(destination),
                            code.globalPointer(memref, byte), code.getI32IntegerAttr(16),
                            NVVM::LoadCacheModifierKindAttr::get(
                                code.getContext(), NVVM::LoadCacheModifierKind::CG),
                            size);
  }

  /// Begins to copy this thread's pieces of a step: two of the input, and the codes of a block.
  void copy(Value step, Value slot) {
    Value k = code.add(code.mul(step, depth), code.mul(leftChunk, 8));
    Value isInside = code.isWithin(k, code.index(elements));
    for (int64_t i = 0; i < 2; ++i) {
      Value byte = code.mul(code.add(code.mul(inputRow[i], elements), k), 2);
      copyPiece(code.add(code.times(slot, leftBytes), leftPlace[i]), tiles.getInput(), byte,
                code.both(isRow[i], isInside));
    }
    Value block = getBlock(step);
    Value byte = code.mul(code.add(code.mul(row, elements / 32), block), 16);
    copyPiece(code.add(code.times(slot, codeBytes), codePlace), tiles.getStorage()[0], byte,
              isBlock(block));
    NVVM::CpAsyncCommitGroupOp::create(code, code.getLoc());
  }

  Value getBlock(Value step) { return code.add(code.mul(step, 2), half); }
  Value isBlock(Value block) {
    return code.both(isColumn, code.isWithin(block, code.index(elements / 32)));
  }

  /// The scale of this thread's block, as i32.
  Value loadScale(Value step) {
    Value block = getBlock(step);
    return code.choose(
        isBlock(block), {code.getI32Type()},
        [&]() -> SmallVector<Value> {
          Value byte = memref::LoadOp::create(code, code.getLoc(), tiles.getStorage()[1],
                                              ValueRange{tiles.getExpert(), weightRow, block});
          return {arith::ExtUIOp::create(code, code.getLoc(), code.getI32Type(), byte).getResult()};
        },
        [&]() -> SmallVector<Value> { return {code.int32(127)}; })[0];
  }

  void storePiece(Value words, Value offset) {
    LLVM::StoreOp::create(code, code.getLoc(), words, code.dynamicShared(offset),
                          /*alignment=*/16);
  }

  /// This thread's codes of a slot to bf16.
  void convert(Value copySlot, Value productSlot, Value scale) {
    Value codes = LLVM::LoadOp::create(
        code, code.getLoc(), code.intVector(4),
        code.dynamicShared(code.add(code.times(copySlot, codeBytes), codePlace)),
        /*alignment=*/16);
    Value offset = code.times(productSlot, rightBytes);
    SmallVector<Value> words;
    for (int64_t i = 0; i < 4; ++i)
      llvm::append_range(
          words, convertWord(static_cast<CodeBuilder &>(code).lane(codes, i), scale));
    // Scales above one are rare: most warps skip their second factor.
    SmallVector<Type> types(words.size(), code.getI32Type());
    words = code.choose(
        code.compare(arith::CmpIPredicate::sgt, scale, code.int32(largestFirst)), types,
        [&] {
          SmallVector<Value> scaled;
          Value factor = getSecondFactor(scale);
          for (Value word : words)
            scaled.push_back(multiplyPair(word, factor));
          return scaled;
        },
        [&] { return words; });
    // Eight codes of a word are sixteen bytes of bf16.
    for (int64_t i = 0; i < 4; ++i)
      storePiece(code.fromLanes(ArrayRef(words).slice(4 * i, 4)),
                 code.add(offset, rightPlace[i]));
  }

  // 2^(byte - 1) is a product of two bf16: the second is 1 for bytes up to 128, and NaN for 255.
  static constexpr int64_t largestFirst = 128;

  Value shiftLeft(Value value, int64_t bits) {
    return arith::ShLIOp::create(code, code.getLoc(), value, code.int32(bits));
  }
  Value orBits(Value a, Value b) { return arith::OrIOp::create(code, code.getLoc(), a, b); }
  Value twice(Value bits) { return orBits(bits, shiftLeft(bits, 16)); }

  Value getFirstFactor(Value byte) {
    return twice(shiftLeft(code.plus(code.minimum(byte, code.int32(largestFirst)), 126), 7));
  }
  Value getSecondFactor(Value byte) {
    Value bits = shiftLeft(code.plus(byte, 127 - largestFirst), 7);
    return twice(code.select(code.isEqual(byte, 255), code.int32(0x7fc0), bits));
  }

  Value toPair(Value word) {
    return LLVM::BitcastOp::create(code, code.getLoc(), VectorType::get({2}, code.getBF16Type()),
                                   word);
  }
  Value multiplyPair(Value word, Value factor) {
    Value product = LLVM::FMulOp::create(code, code.getLoc(), toPair(word), toPair(factor));
    return LLVM::BitcastOp::create(code, code.getLoc(), code.getI32Type(), product);
  }

  /// The halves of two words that `selector` names, by bytes.
  Value permute(Value a, Value b, int64_t selector) {
    return LLVM::InlineAsmOp::create(
               code, code.getLoc(), code.getI32Type(), ValueRange{a, b},
               "prmt.b32 $0, $1, $2, " + std::to_string(selector) + ";", "=r,r,r",
               /*has_side_effects=*/false, /*is_align_stack=*/false, LLVM::TailCallKind::None,
               LLVM::AsmDialectAttr(), ArrayAttr())
        .getRes();
  }

  /// The eight codes of a word as four pairs of bf16, in order. A mask takes codes j and j + 4 at
  /// once, one for each half: signs to bit 15, exponents and mantissas to bits 8 to 6.
  SmallVector<Value> convertWord(Value word, Value scale) {
    Location loc = code.getLoc();
    auto move = [&](int64_t left) -> Value {
      if (left >= 0)
        return shiftLeft(word, left);
      return arith::ShRUIOp::create(code, loc, word, code.int32(-left));
    };
    SmallVector<Value> apart, pairs;
    for (int64_t j = 0; j < 4; ++j)
      apart.push_back(orBits(code.andBits(move(6 - 4 * j), 0x01c001c0),
                             code.andBits(move(12 - 4 * j), int64_t(0x80008000))));
    constexpr int64_t lowHalves = 0x5410, highHalves = 0x7632;
    for (int64_t selector : {lowHalves, highHalves})
      for (int64_t j : {0, 2})
        pairs.push_back(permute(apart[j], apart[j + 1], selector));
    Value factor = getFirstFactor(scale);
    for (Value &pair : pairs)
      pair = multiplyPair(pair, factor);
    return pairs;
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
  int64_t elements;
  WarpgroupProduct product;
  Value firstColumn, leftChunk, half, isColumn, weightRow, row, codePlace;
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
