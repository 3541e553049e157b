//===- Attention.cpp - a block computes one query head of one token ---------------------------===//
//
// Groups of lanes take the keys in turn, each with running maximum, sum and weighted values, which
// are joined in a fixed order at the end: a token's bits depend on nothing else in the batch.
//
//===------------------------------------------------------------------------------------------===//

#include "../Strategies.h"
#include "LaneRows.h"
#include "RotaryElement.h"
#include "Strategies.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 256;
/// Below every score that occurs, finite itself: differences of scores are numbers.
constexpr double lowestScore = -1e30;

class AttentionBlock {
public:
  AttentionBlock(BlockCode &code, moe::AttentionOp op, ValueRange operands, Value result)
      : code(code), op(op), type(op.getCache().getType()),
        heads(op.getQuery().getType().getDimSize(1)), query(operands[0]), positions(operands[2]),
        tokenSequences(operands[3]), result(result), rows(code, type, operands[1], operands[4]),
        layout(rows.getLayout()), keyDim(type.getKeyDim()), valueDim(type.getValueDim()),
        groups(rows.countGroups()) {
    unsigned next = 5;
    if (op.getSinks())
      sinks = operands[next++];
    if (op.getIndices())
      indices = operands[next];
  }

  void build(Value workgroup) {
    token = code.divide(workgroup, heads);
    head = code.remainder(workgroup, heads);
    kvHead = code.divide(head, heads / type.getKvHeads());
    position = code.loadInt(positions, token);
    loadQuery();
    join(visitKeys());
  }

private:
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

  /// Maximum, sum and weighted values (a vector for each part) of this group's keys.
  SmallVector<Value> visitKeys() {
    Value sequence = code.loadIndex(tokenSequences, token);
    Value end = code.add(code.toIndex(position), 1), first = code.index(0);
    if (op.getWindow() > 0)
      first = code.maximum(code.sub(end, code.index(op.getWindow())), first);
    SmallVector<Value> initial = {code.float32(lowestScore), code.float32(0)};
    initial.append(layout.countParts(valueDim), code.floatSplat(0, layout.width));
    // Entries of the list of positions, or positions from the first.
    Value entries = indices ? code.dim(indices, 1) : code.sub(end, first);
    // All groups of a warp make as many steps: they exchange values.
    int64_t groupsOfWarp = BlockCode::warpSize / layout.lanes;
    Value firstOfWarp = code.mul(code.warp(), groupsOfWarp);
    Value group = code.divide(code.lane(), layout.lanes);
    return code.loop(firstOfWarp, entries, groups, initial,
                     [&](Value start, ValueRange carried) -> SmallVector<Value> {
                       Value other = getPosition(code.add(start, group), entries, first);
                       PagedCache::Place place = rows.getCache().find(code, sequence, other);
                       Value isSeen =
                           code.both(code.compare(arith::CmpIPredicate::sge, other, first),
                                     code.compare(arith::CmpIPredicate::slt, other, end));
                       place.known = code.both(place.known, isSeen);
                       return visitKey(place, carried);
                     });
  }

  /// The position of entry `entry`; -1 behind the last one.
  Value getPosition(Value entry, Value entries, Value first) {
    Value isThere = code.isWithin(entry, entries), none = code.index(-1);
    if (!indices)
      return code.select(isThere, code.add(first, entry), none);
    return code.choose(
        isThere, {code.getIndexType()},
        [&]() -> SmallVector<Value> { return {code.loadIndex(indices, {token, entry})}; },
        [&]() -> SmallVector<Value> { return {none}; })[0];
  }

  SmallVector<Value> visitKey(PagedCache::Place place, ValueRange carried) {
    SmallVector<Value> keys = rows.loadRow(place, keyDim, [&](Value i) {
      return rows.getCache().getKeyIndex(code, kvHead, place.slot, i);
    });
    SmallVector<Value> values;
    if (type.isShared())
      values.assign(keys.begin(), keys.begin() + layout.countParts(valueDim));
    else
      values = rows.loadRow(place, valueDim, [&](Value i) {
        return rows.getCache().getValueIndex(code, kvHead, place.slot, i);
      });
    Value products = code.floatSplat(0, layout.width);
    for (auto [part, key] : llvm::enumerate(keys))
      products = code.fma(key, rows.loadPart(scaled, {}, part, keyDim), products);
    Value score = code.sumOverLanes(code.sumLanes(products), layout.lanes);
    if (double cap = op.getSoftcap().convertToDouble(); cap != 0) {
      Value tanh = math::TanhOp::create(code, code.getLoc(), code.divide(score, code.float32(cap)));
      score = code.mul(tanh, code.float32(cap));
    }
    Value maximum = code.select(place.known, code.maximum(score, carried[0]), carried[0]);
    Value fading = code.exp(code.sub(carried[0], maximum));
    Value weight = code.select(place.known, code.exp(code.sub(score, maximum)), code.float32(0));
    SmallVector<Value> next = {maximum, code.fma(carried[1], fading, weight)};
    for (auto [part, value] : llvm::enumerate(values)) {
      Value faded = code.mul(carried[2 + part], code.broadcast(fading, layout.width));
      next.push_back(code.fma(code.broadcast(weight, layout.width), value, faded));
    }
    return next;
  }

  /// Adds the groups' sums up and writes the row.
  void join(ValueRange state) {
    Value maxima = code.allocateShared({groups}, code.getF32Type());
    Value sums = code.allocateShared({groups}, code.getF32Type());
    Value values = code.allocateShared({groups, valueDim}, code.getF32Type());
    Value group = code.divide(code.thread(), layout.lanes);
    Value lane = code.remainder(code.thread(), layout.lanes);
    code.when(code.compare(arith::CmpIPredicate::eq, lane, code.index(0)), [&] {
      code.storeFloat(state[0], maxima, group);
      code.storeFloat(state[1], sums, group);
    });
    for (int64_t part = 0; part < layout.countParts(valueDim); ++part) {
      Value i = rows.getElement(part);
      auto store = [&] { code.storeFloats(state[2 + part], values, {group, i}); };
      if ((part + 1) * layout.getPartSize() <= valueDim)
        store();
      else
        code.when(code.isWithin(i, code.index(valueDim)), store);
    }
    code.barrier();

    Value zero = code.index(0), all = code.index(groups);
    Value maximum = code.loop(zero, all, 1, {code.float32(lowestScore)},
                              [&](Value other, ValueRange carried) -> SmallVector<Value> {
                                return {code.maximum(code.loadFloat(maxima, other), carried[0])};
                              })[0];
    Value sum = code.float32(0);
    if (sinks) {
      Value sink = code.loadFloat(sinks, head);
      maximum = code.maximum(sink, maximum);
      sum = code.exp(code.sub(sink, maximum));
    }
    auto getWeight = [&](Value other) {
      return code.exp(code.sub(code.loadFloat(maxima, other), maximum));
    };
    sum = code.loop(zero, all, 1, {sum},
                    [&](Value other, ValueRange carried) -> SmallVector<Value> {
                      return {code.fma(code.loadFloat(sums, other), getWeight(other), carried[0])};
                    })[0];
    // A token that sees nothing gets zeros.
    Value isEmpty = code.compare(arith::CmpFPredicate::OEQ, sum, code.float32(0));
    Value divisor = code.select(isEmpty, code.float32(1), sum);
    code.forEachOfThread(code.index(valueDim), [&](Value i) {
      Value total = code.loop(zero, all, 1, {code.float32(0)},
                              [&](Value other, ValueRange carried) -> SmallVector<Value> {
                                Value theirs = code.loadFloat(values, {other, i});
                                return {code.fma(theirs, getWeight(other), carried[0])};
                              })[0];
      code.storeFloat(code.divide(total, divisor), result, {token, head, i});
    });
  }

  BlockCode &code;
  moe::AttentionOp op;
  moe::CacheType type;
  int64_t heads;
  Value query, positions, tokenSequences, sinks, indices, result;
  LaneRows rows;
  LaneLayout layout;
  int64_t keyDim, valueDim, groups;
  Value token, head, kvHead, position, scaled;
};

class CUDAAttentionStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.attention.warps"; }
  StringRef getOpName() const override { return moe::AttentionOp::getOperationName(); }
  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::AttentionOp>(op) && target.isCUDA();
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
