//===- SelectKeys.cpp - a block scores one token's index keys and keeps the best --------------===//
//
// Groups of lanes take keys in turn. The best keys so far are candidates in shared memory, in the
// order of their positions; when there is no room for more, the top_k largest stay.
//
//===------------------------------------------------------------------------------------------===//

#include "../OrderedScores.h"
#include "../Strategies.h"
#include "LaneRows.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 256, warps = threads / BlockCode::warpSize;
/// Candidates that are gathered before the best are kept, beyond those that are.
constexpr int64_t spareCandidates = 1024;

class SelectKeysBlock {
public:
  SelectKeysBlock(BlockCode &code, moe::SelectKeysOp op, ValueRange operands, Value result)
      : code(code), op(op), rows(code, op.getCache().getType(), operands[2], operands[5]),
        topK(op.getTopK()), capacity(topK + spareCandidates),
        heads(op.getQuery().getType().getDimSize(1)), dim(op.getQuery().getType().getDimSize(2)),
        query(operands[0]), weights(operands[1]), positions(operands[3]),
        tokenSequences(operands[4]), result(result) {}

  void build(Value workgroup) {
    token = workgroup;
    sequence = code.loadIndex(tokenSequences, token);
    end = code.add(code.loadIndex(positions, token), 1);
    Value all = code.compare(arith::CmpIPredicate::sle, end, code.index(topK));
    // Few keys are all chosen: no need to look at them.
    code.choose(
        all, [&] { writeAll(); }, [&] { writeBest(); });
  }

private:
  void writeAll() {
    code.forEachOfThread(code.index(topK), [&](Value i) {
      Value isThere = code.compare(arith::CmpIPredicate::slt, i, end);
      code.storeInt(code.select(isThere, code.toInt32(i), code.int32(-1)), result, {token, i});
    });
  }

  void writeBest() {
    order = code.allocateShared({capacity}, code.getI32Type());
    places = code.allocateShared({capacity}, code.getI32Type());
    ofWarps = code.allocateShared({warps}, code.getI32Type());
    sums = code.allocateShared({threads}, code.getI32Type());
    // All threads make as many steps: they meet at barriers.
    int64_t step = rows.countGroups();
    Value count = code.loop(code.index(0), end, step, {code.index(0)},
                            [&](Value first, ValueRange carried) -> SmallVector<Value> {
                              Value isFull =
                                  code.compare(arith::CmpIPredicate::sgt,
                                               code.add(carried[0], step), code.index(capacity));
                              Value before = code.choose(
                                  isFull, {code.getIndexType()},
                                  [&]() -> SmallVector<Value> { return {keepBest(carried[0])}; },
                                  [&]() -> SmallVector<Value> { return {carried[0]}; })[0];
                              addKeys(first, before);
                              Value added = code.minimum(code.index(step), code.sub(end, first));
                              return {code.add(before, added)};
                            })[0];
    keepBest(count);
    code.forEachOfThread(code.index(topK), [&](Value i) {
      code.storeInt(code.loadInt(places, i), result, {token, i});
    });
  }

  /// Scores a key for each group from position `first` on and stores them behind `count`
  /// candidates.
  void addKeys(Value first, Value count) {
    Value position = code.add(first, rows.getGroup());
    Value isThere = code.compare(arith::CmpIPredicate::slt, position, end);
    PagedCache::Place place = rows.getCache().find(code, sequence, position);
    place.known = code.both(place.known, isThere);
    SmallVector<Value> key = rows.loadRow(place, dim, [&](Value i) {
      return rows.getCache().getKeyIndex(code, code.index(0), place.slot, i);
    });
    Value scale = code.float32(op.getScale().convertToDouble()), zero = code.float32(0);
    Value score = code.loop(
        code.index(0), code.index(heads), 1, {zero},
        [&](Value head, ValueRange carried) -> SmallVector<Value> {
          Value products = code.floatSplat(0, rows.getLayout().width);
          for (auto [part, elements] : llvm::enumerate(key))
            products = code.fma(elements, rows.loadPart(query, {token, head}, part, dim), products);
          Value product = code.sumOverLanes(code.sumLanes(products), rows.getLayout().lanes);
          // Not a maximum: NaN has to stay.
          Value isNegative = code.compare(arith::CmpFPredicate::OLT, product, zero);
          Value weight = code.mul(code.loadFloat(weights, {token, head}), scale);
          return {code.fma(weight, code.select(isNegative, zero, product), carried[0])};
        })[0];
    Value isFirst =
        code.compare(arith::CmpIPredicate::eq, code.remainder(code.lane(), rows.getLayout().lanes),
                     code.index(0));
    code.when(code.both(isFirst, isThere), [&] {
      Value candidate = code.add(count, rows.getGroup());
      code.storeInt(orderOfScores(code, score), order, candidate);
      code.storeInt(code.toInt32(position), places, candidate);
    });
  }

  /// Keeps the top_k best of `count` candidates, which are more; returns top_k.
  Value keepBest(Value count) {
    code.barrier();
    Value threshold =
        findThreshold(code, topK, [&](Value least) { return countAtLeast(count, least); });
    Value above = countAtLeast(count, code.add(threshold, code.int32(1)));
    // Of candidates at the threshold the first ones stay.
    Value left = code.sub(code.int32(topK), above);
    code.loop(code.index(0), count, threads, {code.int32(0), left},
              [&](Value first, ValueRange carried) {
                return moveCandidates(first, count, threshold, carried[0], carried[1]);
              });
    return code.index(topK);
  }

  /// How many of `count` candidates have at least the order `least`; the same in all threads.
  Value countAtLeast(Value count, Value least) {
    Value mine = code.loop(code.thread(), count, threads, {code.int32(0)},
                           [&](Value i, ValueRange carried) -> SmallVector<Value> {
                             Value counts = code.compare(arith::CmpIPredicate::sge,
                                                         code.loadInt(order, i), least);
                             Value one = code.select(counts, code.int32(1), code.int32(0));
                             return {code.add(carried[0], one)};
                           })[0];
    Value ofWarp = code.sumOverLanes(mine);
    code.when(code.compare(arith::CmpIPredicate::eq, code.lane(), code.index(0)),
              [&] { code.storeInt(ofWarp, ofWarps, code.warp()); });
    code.barrier();
    Value total = code.int32(0);
    for (int64_t warp = 0; warp < warps; ++warp)
      total = code.add(total, code.loadInt(ofWarps, code.index(warp)));
    code.barrier(); // before somebody stores the next counts
    return total;
  }

  /// Moves those of the `threads` candidates from `first` on that stay behind the `kept` ones
  /// before them. All are read before any is written, and none moves up. Returns how many are kept
  /// then, and how many at the threshold may follow.
  SmallVector<Value> moveCandidates(Value first, Value count, Value threshold, Value kept,
                                    Value left) {
    Location loc = code.getLoc();
    Value i = code.add(first, code.thread()), none = code.int32(lowestOrder);
    SmallVector<Value> candidate = code.choose(
        code.isWithin(i, count), {code.getI32Type(), code.getI32Type()},
        [&]() -> SmallVector<Value> {
          return {code.loadInt(order, i), code.loadInt(places, i)};
        },
        [&]() -> SmallVector<Value> {
          return {none, none};
        });
    Value isAbove = code.compare(arith::CmpIPredicate::sgt, candidate[0], threshold);
    Value isAt = code.compare(arith::CmpIPredicate::eq, candidate[0], threshold);
    // Both are counted in one number, those at the threshold in its upper half.
    constexpr int64_t half = 1 << 16;
    Value mine =
        code.select(isAbove, code.int32(1), code.select(isAt, code.int32(half), code.int32(0)));
    Value upToMine = sumUp(mine);
    Value all = code.loadInt(sums, code.index(threads - 1));
    Value before = code.sub(upToMine, mine);
    auto getAbove = [&](Value both) -> Value {
      return arith::AndIOp::create(code, loc, both, code.int32(half - 1));
    };
    auto getAt = [&](Value both) -> Value {
      return arith::ShRUIOp::create(code, loc, both, code.int32(16));
    };
    Value isAllowed = code.compare(arith::CmpIPredicate::slt, getAt(before), left);
    Value stays = arith::OrIOp::create(code, loc, isAbove, code.both(isAt, isAllowed));
    auto countKept = [&](Value both) {
      return code.add(getAbove(both), code.minimum(getAt(both), left));
    };
    code.when(stays, [&] {
      Value place = code.toIndex(code.add(kept, countKept(before)));
      code.storeInt(candidate[0], order, place);
      code.storeInt(candidate[1], places, place);
    });
    code.barrier();
    return {code.add(kept, countKept(all)), code.sub(left, code.minimum(getAt(all), left))};
  }

  /// The sum of `value` over the threads up to this one; the memory `sums` has it of each thread.
  Value sumUp(Value value) {
    Value sum = value;
    code.storeInt(sum, sums, code.thread());
    code.barrier();
    for (int64_t distance = 1; distance < threads; distance *= 2) {
      Value other = code.sub(code.thread(), code.index(distance));
      Value theirs = code.choose(
          code.compare(arith::CmpIPredicate::sge, other, code.index(0)), {code.getI32Type()},
          [&]() -> SmallVector<Value> { return {code.loadInt(sums, other)}; },
          [&]() -> SmallVector<Value> { return {code.int32(0)}; })[0];
      code.barrier();
      sum = code.add(sum, theirs);
      code.storeInt(sum, sums, code.thread());
      code.barrier();
    }
    return sum;
  }

  BlockCode &code;
  moe::SelectKeysOp op;
  LaneRows rows;
  int64_t topK, capacity, heads, dim;
  Value query, weights, positions, tokenSequences, result;
  Value order, places; ///< i32 [capacity]: candidates
  Value ofWarps, sums; ///< i32, a number of each warp and of each thread
  Value token, sequence, end;
};

class CUDASelectKeysStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.select_keys"; }
  StringRef getOpName() const override { return moe::SelectKeysOp::getOperationName(); }
  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::SelectKeysOp>(op) && target.isCUDA();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return countTiles(builder, op->getLoc(), cast<moe::SelectKeysOp>(op).getQuery(), 1, 1);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    BlockCode code(op->getLoc(), builder, threads);
    SelectKeysBlock(code, cast<moe::SelectKeysOp>(op), operands, results[0]).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDASelectKeysStrategy() {
  static const CUDASelectKeysStrategy strategy;
  return strategy;
}
