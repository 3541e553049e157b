//===- Attention.cpp - a block computes one query head of one token ---------------------------===//
//
// Groups of lanes take the keys in turn, each with running maximum, sum and weighted values, which
// are joined in a fixed order at the end: a token's bits depend on nothing else in the batch.
//
//===------------------------------------------------------------------------------------------===//

#include "../Strategies.h"
#include "../VectorCode.h"
#include "PagedCache.h"
#include "RotaryElement.h"
#include "Strategies.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 256;
/// Below every score that occurs, finite itself: differences of scores are numbers.
constexpr double lowestScore = -1e30;

/// How a key or a value lies over lanes: `lanes` of them hold it together, `width` neighbours each,
/// and again for each part of a longer row.
struct LaneLayout {
  int64_t lanes, width;

  int64_t getPartSize() const { return lanes * width; }
  int64_t countParts(int64_t size) const { return llvm::divideCeil(size, getPartSize()); }

  /// Eight lanes with whole 16-byte accesses where rows allow it; else the warp, element by element.
  static LaneLayout get(moe::CacheType type) {
    LaneLayout wide = {8, 8};
    bool fits = type.getKeyDim() % wide.getPartSize() == 0 &&
                type.getValueDim() % wide.getPartSize() == 0 && type.getKeyDim() <= 256 &&
                type.getValueDim() <= 256;
    return fits ? wide : LaneLayout{BlockCode::warpSize, 1};
  }
};

class AttentionBlock {
public:
  AttentionBlock(BlockCode &code, moe::AttentionOp op, ValueRange operands, Value result)
      : code(code), op(op), type(op.getCache().getType()), layout(LaneLayout::get(type)),
        heads(op.getQuery().getType().getDimSize(1)), query(operands[0]), positions(operands[2]),
        tokenSequences(operands[3]), sinks(op.getSinks() ? operands[5] : Value()), result(result),
        cache(type, operands[1], operands[4]), keyDim(type.getKeyDim()),
        valueDim(type.getValueDim()), groupsOfWarp(BlockCode::warpSize / layout.lanes),
        groups(code.getWarps() * groupsOfWarp) {}

  void build(Value workgroup) {
    token = code.divide(workgroup, heads);
    head = code.remainder(workgroup, heads);
    kvHead = code.divide(head, heads / type.getKvHeads());
    position = code.loadInt(positions, token);
    firstOfLane = code.mul(code.remainder(code.lane(), layout.lanes), layout.width);
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
    // All groups of a warp make as many steps: they exchange values.
    Value firstOfWarp = code.add(first, code.mul(code.warp(), groupsOfWarp));
    Value group = code.divide(code.lane(), layout.lanes);
    return code.loop(firstOfWarp, end, groups, initial,
                     [&](Value start, ValueRange carried) -> SmallVector<Value> {
                       Value other = code.add(start, group);
                       PagedCache::Place place = cache.find(code, sequence, other);
                       place.known = code.both(place.known, code.isWithin(other, end));
                       return visitKey(place, carried);
                     });
  }

  SmallVector<Value> visitKey(PagedCache::Place place, ValueRange carried) {
    SmallVector<Value> keys = loadRow(place, keyDim, [&](Value i) {
      return cache.getKeyIndex(code, kvHead, place.slot, i);
    });
    SmallVector<Value> values = loadRow(place, valueDim, [&](Value i) {
      return cache.getValueIndex(code, kvHead, place.slot, i);
    });
    Value products = code.floatSplat(0, layout.width);
    for (auto [part, key] : llvm::enumerate(keys))
      products = code.fma(key, loadScaled(part), products);
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

  Value getElement(int64_t part) { return code.add(firstOfLane, part * layout.getPartSize()); }

  /// This lane's parts of a row of the cache; zeros where the place is unknown or the row has ended.
  SmallVector<Value> loadRow(PagedCache::Place place, int64_t size,
                             function_ref<Value(Value i)> getIndex) {
    SmallVector<Value> parts;
    VectorType vector = code.floatVector(layout.width);
    for (int64_t part = 0; part < layout.countParts(size); ++part) {
      Value i = getElement(part);
      Value isThere = place.known;
      if ((part + 1) * layout.getPartSize() > size)
        isThere = code.both(isThere, code.isWithin(i, code.index(size)));
      parts.push_back(code.choose(
          isThere, {vector},
          [&]() -> SmallVector<Value> { return {loadWide({place.block, getIndex(i)})}; },
          [&]() -> SmallVector<Value> { return {code.floatSplat(0, layout.width)}; })[0]);
    }
    return parts;
  }

  /// `width` elements of the cache in one access.
  Value loadWide(ValueRange place) {
    Type element = type.getElement();
    auto vector = VectorType::get({layout.width}, element);
    llvm::MaybeAlign alignment(std::min<int64_t>(
        layout.width * element.getIntOrFloatBitWidth() / 8, 16));
    Value loaded = vector::LoadOp::create(code, code.getLoc(), vector, cache.getMemory(), place,
                                          /*nontemporal=*/false, alignment);
    if (element.isF32())
      return loaded;
    return arith::ExtFOp::create(code, code.getLoc(), code.floatVector(layout.width), loaded);
  }

  Value loadScaled(int64_t part) {
    Value i = getElement(part);
    if ((part + 1) * layout.getPartSize() <= keyDim)
      return code.loadFloats(scaled, i, layout.width);
    return code.choose(
        code.isWithin(i, code.index(keyDim)), {code.floatVector(layout.width)},
        [&]() -> SmallVector<Value> { return {code.loadFloats(scaled, i, layout.width)}; },
        [&]() -> SmallVector<Value> { return {code.floatSplat(0, layout.width)}; })[0];
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
      Value i = getElement(part);
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
  LaneLayout layout;
  int64_t heads;
  Value query, positions, tokenSequences, sinks, result;
  PagedCache cache;
  int64_t keyDim, valueDim, groupsOfWarp, groups;
  Value token, head, kvHead, position, scaled, firstOfLane;
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
