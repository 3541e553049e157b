//===- Attention.cpp - a block computes one query head of one token ---------------------------===//
//
// Warps take the keys in turn, each with running maximum, sum and weighted values, which are joined
// in a fixed order at the end: a token's bits depend on nothing else in the batch.
//
//===------------------------------------------------------------------------------------------===//

#include "../Strategies.h"
#include "PagedCache.h"
#include "RotaryElement.h"
#include "Strategies.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 128;
/// Below every score that occurs, finite itself: differences of scores are numbers.
constexpr double lowestScore = -1e30;

class AttentionBlock {
public:
  AttentionBlock(BlockCode &code, moe::AttentionOp op, ValueRange operands, Value result)
      : code(code), op(op), type(op.getCache().getType()),
        heads(op.getQuery().getType().getDimSize(1)), query(operands[0]), positions(operands[2]),
        tokenSequences(operands[3]), sinks(op.getSinks() ? operands[5] : Value()), result(result),
        cache(type, operands[1], operands[4]), keyDim(type.getKeyDim()),
        valueDim(type.getValueDim()) {}

  void build(Value workgroup) {
    token = code.divide(workgroup, heads);
    head = code.remainder(workgroup, heads);
    position = code.loadInt(positions, token);
    loadQuery();
    SmallVector<Value> state = visitKeys();
    join(state);
  }

private:
  /// Parts of a row of `size` that each lane holds, a warp apart.
  static int64_t countParts(int64_t size) { return llvm::divideCeil(size, BlockCode::warpSize); }

  /// The query, rotated and scaled, in shared memory.
  void loadQuery() {
    scaled = code.allocateShared({keyDim}, code.getF32Type());
    RotaryElement rotary(code, op.getRotaryAttr());
    Value scale = code.float32(op.getScale().convertToDouble());
    code.forEachOfThread(code.index(keyDim), [&](Value i) {
      Value x = rotary.build(code, position, i, [&](Value other) {
        return code.loadFloat(query, {token, head, other});
      });
      code.storeFloat(code.mul(x, scale), scaled, i);
    });
    code.barrier();
  }

  /// Maximum, sum and weighted values (parts) of this warp's keys.
  SmallVector<Value> visitKeys() {
    Value kvHead = code.divide(head, heads / type.getKvHeads());
    Value sequence = code.loadIndex(tokenSequences, token);
    Value end = code.add(code.toIndex(position), 1), first = code.index(0);
    if (op.getWindow() > 0)
      first = code.maximum(code.sub(end, code.index(op.getWindow())), first);
    SmallVector<Value> initial = {code.float32(lowestScore), code.float32(0)};
    initial.append(countParts(valueDim), code.float32(0));
    return code.loop(
        code.add(first, code.warp()), end, code.getWarps(), initial,
        [&](Value other, ValueRange carried) -> SmallVector<Value> {
          PagedCache::Place place = cache.find(code, sequence, other);
          return code.choose(
              place.known, carried.getTypes(),
              [&] { return visitKey(place, kvHead, carried); },
              [&] { return SmallVector<Value>(carried); });
        });
  }

  SmallVector<Value> visitKey(PagedCache::Place place, Value kvHead, ValueRange carried) {
    Value dot = code.float32(0);
    forEachPart(keyDim, [&](int64_t, Value i) {
      Value key = code.loadFloat(cache.getMemory(),
                                 {place.block, cache.getKeyIndex(code, kvHead, place.slot, i)});
      return code.mul(key, code.loadFloat(scaled, i));
    }, [&](int64_t, Value product) { dot = code.add(dot, product); });
    Value score = code.sumOverLanes(dot);
    if (double cap = op.getSoftcap().convertToDouble(); cap != 0) {
      Value tanh = math::TanhOp::create(code, code.getLoc(), code.divide(score, code.float32(cap)));
      score = code.mul(tanh, code.float32(cap));
    }
    Value maximum = code.maximum(score, carried[0]);
    Value fading = code.exp(code.sub(carried[0], maximum));
    Value weight = code.exp(code.sub(score, maximum));
    SmallVector<Value> next = {maximum, code.fma(carried[1], fading, weight)};
    forEachPart(valueDim, [&](int64_t, Value i) {
      return code.loadFloat(cache.getMemory(),
                            {place.block, cache.getValueIndex(code, kvHead, place.slot, i)});
    }, [&](int64_t part, Value value) {
      next.push_back(code.fma(weight, value, code.mul(carried[2 + part], fading)));
    });
    return next;
  }

  /// Calls `load` for this lane's elements of a row; behind the row's end it is 0.
  void forEachPart(int64_t size, function_ref<Value(int64_t part, Value i)> load,
                   function_ref<void(int64_t part, Value value)> use) {
    Value lane = code.lane();
    for (int64_t part = 0; part < countParts(size); ++part) {
      Value i = code.add(lane, part * BlockCode::warpSize);
      if ((part + 1) * BlockCode::warpSize <= size) {
        use(part, load(part, i));
        continue;
      }
      use(part, code.choose(code.isWithin(i, code.index(size)), {code.getF32Type()},
                            [&]() -> SmallVector<Value> { return {load(part, i)}; },
                            [&]() -> SmallVector<Value> { return {code.float32(0)}; })[0]);
    }
  }

  /// Adds the warps' sums up and writes the row.
  void join(ValueRange state) {
    int64_t warps = code.getWarps();
    Value maxima = code.allocateShared({warps}, code.getF32Type());
    Value sums = code.allocateShared({warps}, code.getF32Type());
    Value values = code.allocateShared({warps, valueDim}, code.getF32Type());
    Value warp = code.warp(), lane = code.lane();
    code.when(code.compare(arith::CmpIPredicate::eq, lane, code.index(0)), [&] {
      code.storeFloat(state[0], maxima, warp);
      code.storeFloat(state[1], sums, warp);
    });
    for (int64_t part = 0; part < countParts(valueDim); ++part) {
      Value i = code.add(lane, part * BlockCode::warpSize);
      code.when(code.isWithin(i, code.index(valueDim)),
                [&] { code.storeFloat(state[2 + part], values, {warp, i}); });
    }
    code.barrier();

    Value maximum = code.float32(lowestScore);
    for (int64_t other = 0; other < warps; ++other)
      maximum = code.maximum(code.loadFloat(maxima, code.index(other)), maximum);
    Value sum = code.float32(0);
    if (sinks) {
      Value sink = code.loadFloat(sinks, head);
      maximum = code.maximum(sink, maximum);
      sum = code.exp(code.sub(sink, maximum));
    }
    SmallVector<Value> weights;
    for (int64_t other = 0; other < warps; ++other) {
      Value theirs = code.loadFloat(maxima, code.index(other));
      weights.push_back(code.exp(code.sub(theirs, maximum)));
      sum = code.fma(code.loadFloat(sums, code.index(other)), weights.back(), sum);
    }
    // A token that sees nothing gets zeros.
    Value isEmpty = code.compare(arith::CmpFPredicate::OEQ, sum, code.float32(0));
    Value divisor = code.select(isEmpty, code.float32(1), sum);
    code.forEachOfThread(code.index(valueDim), [&](Value i) {
      Value total = code.float32(0);
      for (int64_t other = 0; other < warps; ++other)
        total = code.fma(code.loadFloat(values, {code.index(other), i}), weights[other], total);
      code.storeFloat(code.divide(total, divisor), result, {token, head, i});
    });
  }

  BlockCode &code;
  moe::AttentionOp op;
  moe::CacheType type;
  int64_t heads;
  Value query, positions, tokenSequences, sinks, result;
  PagedCache cache;
  int64_t keyDim, valueDim;
  Value token, head, position, scaled;
};

class CUDAAttentionStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.attention.warps"; }
  StringRef getOpName() const override { return moe::AttentionOp::getOperationName(); }
  bool supports(Operation *op, const TargetDescription &target) const override {
    auto attention = dyn_cast<moe::AttentionOp>(op);
    return attention && target.isCUDA() && !attention.getIndices();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto attention = cast<moe::AttentionOp>(op);
    return countTiles(builder, op->getLoc(), attention.getQuery(), 1,
                      attention.getQuery().getType().getDimSize(1));
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    BlockCode code(op->getLoc(), builder, threads);
    AttentionBlock(code, cast<moe::AttentionOp>(op), operands, results[0]).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDAAttentionStrategy() {
  static const CUDAAttentionStrategy strategy;
  return strategy;
}
