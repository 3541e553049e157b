//===- SelectKeys.cpp - strategy that scores index keys and keeps the best --------------------===//
//
// A workgroup takes one token. Keys are scored in panels of a vector's lanes, each key's sum from
// the first element and the first head on, so that a score depends on the token and the key alone.
// The best keys so far are candidates, in the order of their positions; when there is no room for
// more, the top_k largest stay.
//
//===------------------------------------------------------------------------------------------===//

#include "CacheRows.h"
#include "OrderedScores.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Heads whose sums are in registers together.
constexpr int64_t headsTogether = 4;

struct SelectKeysScratch {
  SelectKeysScratch(moe::SelectKeysOp op, int64_t lanes, ScratchAllocator allocator)
      : capacity(2 * std::max<int64_t>(op.getTopK(), 128)) {
    Type f32 = Float32Type::get(op.getContext()), i32 = IntegerType::get(op.getContext(), 32);
    int64_t heads = op.getQuery().getType().getDimSize(1),
            dim = op.getQuery().getType().getDimSize(2);
    query = allocator.allocate({heads, dim}, f32);
    weights = allocator.allocate({heads}, f32);
    panel = allocator.allocate({dim, lanes}, f32);
    // A panel is stored whole, and comparisons read whole vectors.
    order = allocator.allocate({capacity + 2 * lanes}, i32);
    positions = allocator.allocate({capacity + 2 * lanes}, i32);
    bytes = allocator.getBytes();
  }

  int64_t capacity; ///< most candidates
  int64_t bytes;
  Value query;     ///< f32 [heads][dim]
  Value weights;   ///< f32 [heads], times the scale
  Value panel;     ///< f32 [dim][lanes]: keys, transposed
  Value order;     ///< i32: candidates' scores as integers of the same order
  Value positions; ///< i32: candidates' positions
};

class SelectKeysKernel {
public:
  SelectKeysKernel(CodeBuilder &code, moe::SelectKeysOp op, ValueRange operands, Value result,
                   Value scratch, const TargetDescription &target)
      : code(code), op(op), lanes(target.getVectorBytes() / 4), topK(op.getTopK()),
        heads(op.getQuery().getType().getDimSize(1)), dim(op.getQuery().getType().getDimSize(2)),
        query(operands[0]), weights(operands[1]), positions(operands[3]),
        tokenSequences(operands[4]), result(result),
        cache(op.getCache().getType(), operands[2], operands[5]),
        scratch(op, lanes, ScratchAllocator(code, scratch)) {}

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
    code.loop(0, topK, 1, [&](Value i) {
      Value isThere = code.compare(arith::CmpIPredicate::slt, i, end);
      code.storeInt(code.select(isThere, code.toInt32(i), code.int32(-1)), result, {token, i});
    });
  }

  void writeBest() {
    loadQuery();
    Value room = code.index(scratch.capacity);
    Value count = code.loop(code.index(0), end, lanes, {code.index(0)},
                            [&](Value first, ValueRange carried) -> SmallVector<Value> {
                              Value isFull = code.compare(arith::CmpIPredicate::sgt,
                                                          code.add(carried[0], lanes), room);
                              Value before = code.choose(
                                  isFull, {code.getIndexType()},
                                  [&]() -> SmallVector<Value> { return {keepBest(carried[0])}; },
                                  [&]() -> SmallVector<Value> { return {carried[0]}; })[0];
                              addPanel(first, before);
                              Value added = code.minimum(code.index(lanes), code.sub(end, first));
                              return {code.add(before, added)};
                            })[0];
    keepBest(count);
    code.loop(0, topK, 1, [&](Value i) {
      code.storeInt(code.loadInt(scratch.positions, i), result, {token, i});
    });
  }

  void loadQuery() {
    code.loop(0, heads, 1, [&](Value head) {
      code.panels(dim, lanes, [&](Value i, int64_t width) {
        code.storeFloats(code.loadFloats(query, {token, head, i}, width), scratch.query, {head, i});
      });
      Value weight = code.mul(code.loadFloat(weights, {token, head}),
                              code.float32(op.getScale().convertToDouble()));
      code.storeFloat(weight, scratch.weights, head);
    });
  }

  /// Scores the keys at [first, first + lanes) and stores them behind `count` candidates; those
  /// from the sequence's end on are not counted by the caller.
  void addPanel(Value first, Value count) {
    code.loop(0, lanes, 1, [&](Value i) { loadKey(code.add(first, i), i); });
    Value scores = code.floatSplat(0, lanes);
    int64_t whole = heads / headsTogether * headsTogether;
    if (whole > 0)
      scores = code.loop(code.index(0), code.index(whole), headsTogether, {scores},
                         [&](Value head, ValueRange carried) -> SmallVector<Value> {
                           return {addHeads(head, headsTogether, carried[0])};
                         })[0];
    if (whole < heads)
      scores = addHeads(code.index(whole), heads - whole, scores);
    code.storeInts(orderOfScores(code, scores), scratch.order, count);
    Value places = code.add(code.broadcast(code.toInt32(first), lanes), code.iota(lanes));
    code.storeInts(places, scratch.positions, count);
  }

  /// A key as a column of the panel; zeros where there is none.
  void loadKey(Value position, Value column) {
    CacheRows::Place place = cache.find(code, sequence, position);
    Value exists = code.both(place.known, code.compare(arith::CmpIPredicate::slt, position, end));
    Value zero = code.index(0);
    code.choose(
        exists,
        [&] {
          code.loop(0, dim, 1, [&](Value i) {
            code.storeFloat(cache.loadSharedKey(code, place, zero, i), scratch.panel, {i, column});
          });
        },
        [&] {
          code.loop(0, dim, 1, [&](Value i) {
            code.storeFloat(code.float32(0), scratch.panel, {i, column});
          });
        });
  }

  Value addHeads(Value firstHead, int64_t count, Value scores) {
    Value zero = code.index(0), zeros = code.floatSplat(0, lanes);
    SmallVector<Value> products =
        code.loop(zero, code.index(dim), 1, SmallVector<Value>(count, zeros),
                  [&](Value i, ValueRange carried) -> SmallVector<Value> {
                    Value keys = code.loadFloats(scratch.panel, {i, zero}, lanes);
                    SmallVector<Value> sums;
                    for (int64_t head = 0; head < count; ++head) {
                      Value element = code.loadFloat(scratch.query, {code.add(firstHead, head), i});
                      sums.push_back(code.fma(code.broadcast(element, lanes), keys, carried[head]));
                    }
                    return sums;
                  });
    for (auto [head, product] : llvm::enumerate(products)) {
      // Not a maximum: NaN has to stay.
      Value isNegative = code.compare(arith::CmpFPredicate::OLT, product, zeros);
      Value weight = code.loadFloat(scratch.weights, code.add(firstHead, head));
      scores =
          code.fma(code.broadcast(weight, lanes), code.select(isNegative, zeros, product), scores);
    }
    return scores;
  }

  /// Keeps the top_k best of `count` candidates, which are more; returns top_k.
  Value keepBest(Value count) {
    // Comparisons take whole vectors; what is behind the candidates must not count.
    code.storeInts(code.intSplat(lowestOrder, lanes), scratch.order, count);
    Value threshold =
        findThreshold(code, topK, [&](Value candidate) { return countAtLeast(count, candidate); });
    Value above = countAtLeast(count, code.add(threshold, code.int32(1)));
    // Of candidates at the threshold the first ones stay. A candidate never moves up, so that each
    // is read before its place is written.
    Value allowed = code.sub(code.int32(topK), above);
    code.loop(code.index(0), count, 1, {code.index(0), allowed},
              [&](Value i, ValueRange carried) -> SmallVector<Value> {
                Value order = code.loadInt(scratch.order, i);
                Value isAbove = code.compare(arith::CmpIPredicate::sgt, order, threshold);
                Value isAt =
                    code.both(code.compare(arith::CmpIPredicate::eq, order, threshold),
                              code.compare(arith::CmpIPredicate::sgt, carried[1], code.int32(0)));
                Value stays = arith::OrIOp::create(code, code.getLoc(), isAbove, isAt);
                code.when(stays, [&] {
                  code.storeInt(order, scratch.order, carried[0]);
                  code.storeInt(code.loadInt(scratch.positions, i), scratch.positions, carried[0]);
                });
                Value left = code.sub(carried[1], code.int32(1));
                return {code.select(stays, code.add(carried[0], 1), carried[0]),
                        code.select(isAt, left, carried[1])};
              });
    return code.index(topK);
  }

  /// How many of `count` candidates have at least the order `least`, i32.
  Value countAtLeast(Value count, Value least) {
    Value wanted = code.broadcast(least, lanes), ones = code.intSplat(1, lanes),
          zeros = code.intSplat(0, lanes);
    Value counts =
        code.loop(code.index(0), count, lanes, {zeros},
                  [&](Value i, ValueRange carried) -> SmallVector<Value> {
                    Value order = code.loadInts(scratch.order, i, lanes);
                    Value counted = code.select(
                        code.compare(arith::CmpIPredicate::sge, order, wanted), ones, zeros);
                    return {code.add(carried[0], counted)};
                  })[0];
    return code.sumLanes(counts);
  }

  CodeBuilder &code;
  moe::SelectKeysOp op;
  int64_t lanes, topK, heads, dim;
  Value query, weights, positions, tokenSequences, result;
  CacheRows cache;
  SelectKeysScratch scratch;
  Value token, sequence, end;
};

class SelectKeysStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.select_keys"; }
  StringRef getOpName() const override { return moe::SelectKeysOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::SelectKeysOp>(op) && target.isCPU();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return countTiles(builder, op->getLoc(), cast<moe::SelectKeysOp>(op).getQuery(), 1, 1);
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &target) const override {
    SelectKeysScratch scratch(cast<moe::SelectKeysOp>(op), target.getVectorBytes() / 4,
                              ScratchAllocator());
    return builder.getIndexAttr(scratch.bytes);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    SelectKeysKernel(code, cast<moe::SelectKeysOp>(op), operands, results[0], scratch, target)
        .build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getSelectKeysStrategy() {
  static const SelectKeysStrategy strategy;
  return strategy;
}
