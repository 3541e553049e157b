//===- GroupTokens.cpp - a block sorts (token, choice) pairs by expert ------------------------===//
//
// A stable counting sort. Pairs are cut into as many runs as there are warps; each warp walks its run
// in steps of 32 pairs. In a step, a lane's place among the lanes with the same expert is the number
// of such lanes before it, which a vote of the warp tells. So places depend on the order alone.
//
//===------------------------------------------------------------------------------------------===//

#include "BlockCode.h"
#include "Strategies.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 512, warps = threads / BlockCode::warpSize;
/// Counts of all warps and experts are kept in shared memory.
constexpr int64_t mostExperts = 40 * 1024 / (4 * warps);

class GroupTokensBlock {
public:
  GroupTokensBlock(BlockCode &code, moe::GroupTokensOp op, ValueRange operands, ValueRange results)
      : code(code), experts(op.getOffsets().getType().getDimSize(0) - 1),
        choices(op.getIndices().getType().getDimSize(1)), indices(operands[0]), offsets(results[0]),
        pairs(results[1]), cursors(code.allocateShared({warps, experts}, code.getI32Type())),
        totals(code.allocateShared({experts}, code.getI32Type())) {}

  void build() {
    Value count = code.mul(code.dim(indices, 0), choices);
    Value run = code.mul(code.divide(code.add(count, threads - 1), threads), BlockCode::warpSize);
    begin = code.minimum(code.mul(code.warp(), run), count);
    end = code.minimum(code.add(begin, run), count);
    code.forEachOfThread(code.index(warps * experts), [&](Value i) {
      code.storeInt(code.int32(0), cursors, {code.divide(i, experts), code.remainder(i, experts)});
    });
    code.barrier();
    // How many pairs of each expert a warp has; then where its first one goes; then each pair there.
    forEachStep([&](Value, Value, Value) {});
    code.barrier();
    sumUp();
    code.barrier();
    forEachStep([&](Value pair, Value place, Value isPair) {
      code.when(isPair, [&] { code.storeInt(code.toInt32(pair), pairs, code.toIndex(place)); });
    });
  }

private:
  /// Calls `body` with this lane's pair of each step and the value of its expert's cursor for it,
  /// which moves on.
  void forEachStep(function_ref<void(Value pair, Value place, Value isPair)> body) {
    Location loc = code.getLoc();
    Value lane = code.lane(), warp = code.warp();
    code.loop(begin, end, BlockCode::warpSize, [&](Value first) {
      Value pair = code.add(first, lane);
      Value expert = code.choose(
          code.isWithin(pair, end), {code.getIndexType()},
          [&]() -> SmallVector<Value> {
            return {code.loadIndex(indices,
                                   {code.divide(pair, choices), code.remainder(pair, choices)})};
          },
          [&]() -> SmallVector<Value> { return {code.index(-1)}; })[0];
      Value isPair = code.isWithin(expert, code.index(experts));
      Value key = code.toInt32(code.select(isPair, expert, code.index(experts)));
      Value peers = NVVM::MatchSyncOp::create(code, loc, code.getI32Type(), code.int32(-1), key,
                                              NVVM::MatchSyncKind::any);
      Value before = maskOfLanesBefore();
      Value rank = count(arith::AndIOp::create(code, loc, peers, before));
      Value safe = code.select(isPair, expert, code.index(0));
      Value cursor = code.loadInt(cursors, {warp, safe});
      body(pair, code.add(cursor, rank), isPair);
      syncWarp();
      // The first of the lanes with an expert moves its cursor.
      Value isFirst = code.compare(arith::CmpIPredicate::eq, rank, code.int32(0));
      code.when(code.both(isPair, isFirst), [&] {
        code.storeInt(code.add(cursor, count(peers)), cursors, {warp, safe});
      });
      syncWarp();
    });
  }

  Value maskOfLanesBefore() {
    return NVVM::LaneMaskLtOp::create(code, code.getLoc(), code.getI32Type());
  }
  Value count(Value bits) { return math::CtPopOp::create(code, code.getLoc(), bits); }
  void syncWarp() { NVVM::SyncWarpOp::create(code, code.getLoc(), code.int32(-1)); }

  /// From counts to cursors: an expert's pairs follow those of the experts before it, a warp's those
  /// of the warps before it.
  void sumUp() {
    code.forEachOfThread(code.index(experts), [&](Value expert) {
      Value total = code.int32(0);
      for (int64_t warp = 0; warp < warps; ++warp)
        total = code.add(total, code.loadInt(cursors, {code.index(warp), expert}));
      code.storeInt(total, totals, expert);
    });
    code.barrier();
    code.when(code.compare(arith::CmpIPredicate::eq, code.thread(), code.index(0)), [&] {
      code.storeInt(code.int32(0), offsets, code.index(0));
      code.loop(code.index(0), code.index(experts), 1, {code.int32(0)},
                [&](Value expert, ValueRange carried) -> SmallVector<Value> {
                  Value next = code.add(carried[0], code.loadInt(totals, expert));
                  code.storeInt(carried[0], totals, expert);
                  code.storeInt(next, offsets, code.add(expert, 1));
                  return {next};
                });
    });
    code.barrier();
    code.forEachOfThread(code.index(experts), [&](Value expert) {
      Value next = code.loadInt(totals, expert);
      for (int64_t warp = 0; warp < warps; ++warp) {
        Value mine = code.loadInt(cursors, {code.index(warp), expert});
        code.storeInt(next, cursors, {code.index(warp), expert});
        next = code.add(next, mine);
      }
    });
  }

  BlockCode &code;
  int64_t experts, choices;
  Value indices, offsets, pairs, cursors, totals, begin, end;
};

class CUDAGroupTokensStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.group_tokens"; }
  StringRef getOpName() const override { return moe::GroupTokensOp::getOperationName(); }
  bool supports(Operation *op, const TargetDescription &target) const override {
    auto group = dyn_cast<moe::GroupTokensOp>(op);
    return group && target.isCUDA() &&
           group.getOffsets().getType().getDimSize(0) - 1 <= mostExperts;
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 2; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }
  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *,
                               const TargetDescription &) const override {
    return builder.getIndexAttr(1);
  }
  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value, const TargetDescription &) const override {
    BlockCode code(op->getLoc(), builder, threads);
    GroupTokensBlock(code, cast<moe::GroupTokensOp>(op), operands, results).build();
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDAGroupTokensStrategy() {
  static const CUDAGroupTokensStrategy strategy;
  return strategy;
}
