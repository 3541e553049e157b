//===- RelayoutFragments.cpp - MXFP4 codes and scales to register operands, at load -----------===//
//
// A block makes a row of tiles: first each row's largest scale, then tile by tile the words that
// CodeFragments describes, one thread's at a time.
//
//===------------------------------------------------------------------------------------------===//

#include "../Strategies.h"
#include "CodeFragments.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = HopperCode::warpgroupSize;
constexpr int64_t blockSize = 32, bytesOfBlock = 16;
constexpr int64_t noNumber = 255; // the scale byte that is NaN

class RelayoutBlock {
public:
  RelayoutBlock(HopperCode &code, moe::RelayoutOp op, ValueRange operands, Value result)
      : code(code), shape(moe::getLogicalShape(op.getResult().getType())), fragments(shape),
        ofHalves(moe::getLayout(op.getResult().getType()).getSwizzle() ==
                 moe::Swizzle::fragments_of_halves),
        codes(operands[0]), scales(operands[1]), result(result),
        shifts(code.allocateShared({CodeFragments::tileRows}, code.getI32Type())) {}

  void build(Value workgroup) {
    expert = code.divide(workgroup, fragments.getRowTiles());
    Value run = code.remainder(workgroup, fragments.getRowTiles());
    firstRow = code.mul(run, CodeFragments::tileRows);
    destination = code.globalPointer(result, code.mul(workgroup, fragments.getRunBytes()));
    storeFactors();
    code.barrier();
    code.loop(0, fragments.getColumnTiles(), 1, [&](Value tile) { storeTile(tile); });
  }

private:
  int64_t getBlocks() const { return shape[2] / blockSize; }

  /// The row of the weight that is row `r` (index) of the matrix in the order of the layout.
  Value getSourceRow(Value r) {
    if (!ofHalves)
      return r;
    return code.add(code.divide(r, 2), code.mul(code.remainder(r, 2), shape[1] / 2));
  }

  /// The scale byte (i32) of a block of a row, 0 outside of the matrix.
  Value loadScale(Value row, Value block) {
    Value isThere = code.both(code.isWithin(row, code.index(shape[1])),
                              code.isWithin(block, code.index(getBlocks())));
    return code.choose(
        isThere, {code.getI32Type()},
        [&]() -> SmallVector<Value> {
          Value byte = memref::LoadOp::create(code, code.getLoc(), scales,
                                              ValueRange{expert, getSourceRow(row), block});
          return {arith::ExtUIOp::create(code, code.getLoc(), code.getI32Type(), byte).getResult()};
        },
        [&]() -> SmallVector<Value> { return {code.int32(0)}; })[0];
  }

  /// A thread for each row.
  void storeFactors() {
    Value r = code.thread();
    code.when(code.isWithin(r, code.index(CodeFragments::tileRows)), [&] {
      Value row = code.add(firstRow, r);
      SmallVector<Value> found = code.loop(
          code.index(0), code.index(getBlocks()), 1, {code.int32(0), code.boolean(false)},
          [&](Value block, ValueRange carried) -> SmallVector<Value> {
            Value scale = loadScale(row, block);
            Value isNaN = code.isEqual(scale, noNumber);
            Value largest = code.select(isNaN, carried[0], code.maximum(carried[0], scale));
            Value any = arith::OrIOp::create(code, code.getLoc(), carried[1], isNaN);
            return {largest, any};
          });
      Value shift = code.maximum(code.plus(found[0], -CodeFragments::largestScale), code.int32(0));
      code.storeInt(shift, shifts, r);
      constexpr int64_t bias = 127, mantissaBits = 23;
      Value power = arith::ShLIOp::create(code, code.getLoc(), code.plus(shift, bias),
                                          code.int32(mantissaBits));
      Value factor = code.select(found[1], code.int32(0x7fc00000), power);
      Value offset = code.plus(code.toInt32(code.mul(r, 4)),
                               fragments.getColumnTiles() * CodeFragments::tileBytes);
      LLVM::StoreOp::create(code, code.getLoc(), factor, code.offsetPointer(destination, offset));
    });
  }

  void storeTile(Value tile) {
    Value thread = code.threadNumber();
    Value pair = code.shiftedRight(thread, 2), inPair = code.andBits(thread, 3);
    Value rowPair = code.mul(code.toIndex(pair), 2); // rows 2 g and 2 g + 1 of a warp's 16
    SmallVector<Value> words;
    for (int64_t block = 0; block < 2; ++block) {
      Value b = code.add(code.mul(tile, 2), block);
      SmallVector<Value> bytes;
      for (int64_t p = 0; p < CodeFragments::pairs; ++p) {
        int64_t byte = (p / 4) * 8 + (p / 2 % 2) * 4;
        bytes.push_back(loadCode(code.add(rowPair, p % 2), b,
                                 code.toIndex(code.plus(inPair, byte))));
      }
      auto [first, second] = CodeFragments::pack(code, bytes);
      words.append({first, second});
    }
    Value base = code.toInt32(code.mul(tile, CodeFragments::tileBytes));
    LLVM::StoreOp::create(code, code.getLoc(), code.fromLanes(words),
                          code.offsetPointer(destination, code.add(base, code.times(thread, 16))),
                          /*alignment=*/16);
    // Byte `t` of a pair of rows: its row t / 2, block t % 2.
    Value r = code.add(rowPair, code.toIndex(code.shiftedRight(inPair, 1)));
    Value b = code.add(code.mul(tile, 2), code.toIndex(code.andBits(inPair, 1)));
    Value scale = loadScale(code.add(firstRow, r), b);
    Value stored = code.sub(code.plus(scale, CodeFragments::scaleBias), code.loadInt(shifts, r));
    Value isOutside = arith::OrIOp::create(
        code, code.getLoc(), code.isEqual(scale, noNumber),
        arith::XOrIOp::create(code, code.getLoc(),
                              code.both(code.isWithin(b, code.index(getBlocks())),
                                        code.isWithin(code.add(firstRow, r), code.index(shape[1]))),
                              code.boolean(true)));
    Value byte = arith::TruncIOp::create(code, code.getLoc(), code.getI8Type(),
                                         code.select(isOutside, code.int32(0), stored));
    Value offset = code.plus(code.add(base, thread), CodeFragments::codeBytes);
    LLVM::StoreOp::create(code, code.getLoc(), byte, code.offsetPointer(destination, offset));
  }

  /// Byte `byte` (index) of the codes of a block, 0 outside of the matrix.
  Value loadCode(Value r, Value block, Value byte) {
    Value row = code.add(firstRow, r);
    Value isThere = code.both(code.isWithin(row, code.index(shape[1])),
                              code.isWithin(block, code.index(getBlocks())));
    return code.choose(
        isThere, {code.getI32Type()},
        [&]() -> SmallVector<Value> {
          Value matrixRow =
              code.add(code.mul(expert, shape[1]), getSourceRow(row));
          Value at = code.add(
              code.mul(code.add(code.mul(matrixRow, getBlocks()), block), bytesOfBlock), byte);
          Value loaded = LLVM::LoadOp::create(code, code.getLoc(), code.getI8Type(),
                                              code.globalPointer(codes, at));
          return {
              arith::ExtUIOp::create(code, code.getLoc(), code.getI32Type(), loaded).getResult()};
        },
        [&]() -> SmallVector<Value> { return {code.int32(0)}; })[0];
  }

  HopperCode &code;
  ArrayRef<int64_t> shape;
  CodeFragments fragments;
  bool ofHalves;
  Value codes, scales, result, shifts;
  Value expert, firstRow, destination;
};

class RelayoutFragmentsStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.relayout.fragments"; }
  StringRef getOpName() const override { return moe::RelayoutOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto relayout = dyn_cast<moe::RelayoutOp>(op);
    if (!relayout || target.cpu != "sm_90a")
      return false;
    moe::LayoutAttr layout = moe::getLayout(relayout.getResult().getType());
    return layout && moe::isFragments(layout.getSwizzle()) &&
           !moe::getLayout(relayout.getSource().getType()) &&
           moe::getLogicalShape(relayout.getResult().getType()).size() == 3;
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    ArrayRef<int64_t> shape =
        moe::getLogicalShape(cast<moe::RelayoutOp>(op).getResult().getType());
    return builder.getIndexAttr(shape[0] * CodeFragments(shape).getRowTiles());
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    HopperCode code(op->getLoc(), builder, threads);
    RelayoutBlock(code, cast<moe::RelayoutOp>(op), operands, results[0]).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getRelayoutFragmentsStrategy() {
  static const RelayoutFragmentsStrategy strategy;
  return strategy;
}
