//===- Sample.cpp - a block chooses a token ---------------------------------------------------===//

#include "../SampleKernel.h"
#include "../Strategies.h"
#include "BlockCode.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// As many warps as a warp has lanes: each lane then has the value of one warp.
constexpr int64_t threads = 1024, warps = threads / BlockCode::warpSize;
static_assert(warps == BlockCode::warpSize);

class Block : public SampleTeam {
public:
  explicit Block(BlockCode &code)
      : SampleTeam(warps, BlockCode::warpSize), code(code),
        ofWarps(code.allocateShared({warps}, code.getI64Type())), warpNumber(code.warp()),
        laneNumber(code.lane()) {}

  Value squad() override { return warpNumber; }
  Value lane() override { return laneNumber; }
  Value member() override { return code.thread(); }
  Value allocate(int64_t size, Type element) override {
    return code.allocateShared({size}, element);
  }
  void meet() override { code.barrier(); }

  Value combineLanes(Value value, Combine combine) override {
    for (int64_t distance = BlockCode::warpSize / 2; distance > 0; distance /= 2)
      value = combine(value, exchange(value, distance));
    return value;
  }

  Value combineAll(Value value, Combine combine) override {
    value = combineLanes(value, combine);
    code.when(code.compare(arith::CmpIPredicate::eq, laneNumber, code.index(0)),
              [&] { code.storeInt(value, ofWarps, warpNumber); });
    code.barrier();
    value = combineLanes(code.loadInt(ofWarps, laneNumber), combine);
    code.barrier(); // before somebody stores the next values
    return value;
  }

private:
  /// Lanes exchange 32 bits at a time.
  Value exchange(Value value, int64_t distance) {
    Location loc = code.getLoc();
    Type half = code.getI32Type(), whole = code.getI64Type();
    Value bits = arith::ConstantOp::create(code, loc, code.getI64IntegerAttr(32));
    Value low = arith::TruncIOp::create(code, loc, half, value);
    Value high =
        arith::TruncIOp::create(code, loc, half, arith::ShRUIOp::create(code, loc, value, bits));
    low = buildExchange(code, loc, low, distance);
    high = buildExchange(code, loc, high, distance);
    high = arith::ShLIOp::create(code, loc, arith::ExtUIOp::create(code, loc, whole, high), bits);
    return arith::OrIOp::create(code, loc, high, arith::ExtUIOp::create(code, loc, whole, low));
  }

  BlockCode &code;
  Value ofWarps, warpNumber, laneNumber;
};

class CUDASampleStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.sample"; }
  StringRef getOpName() const override { return moe::SampleOp::getOperationName(); }
  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::SampleOp>(op) && target.isCUDA();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }
  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return countTiles(builder, op->getLoc(), cast<moe::SampleOp>(op).getRows(), 1, 1);
  }
  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    BlockCode code(op->getLoc(), builder, threads);
    Block team(code);
    SampleKernel(code, team, cast<moe::SampleOp>(op), operands, results[0]).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDASampleStrategy() {
  static const CUDASampleStrategy strategy;
  return strategy;
}
