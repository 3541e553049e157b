//===- CompressedAttention.cpp - a block computes one head of one token -----------------------===//
//
// Warps take rows of the window and entries in turn, each with running maximum, sum and weighted
// rows, which are joined in a fixed order at the end: a token's bits depend on nothing else in the
// batch. Lanes share a row, which is key and value: it is read once.
//
//===------------------------------------------------------------------------------------------===//

#include "../EntryRows.h"
#include "../Strategies.h"
#include "BlockCode.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 128;
/// Elements of a row in a lane's registers.
constexpr int64_t mostParts = 32;
/// Below every score that occurs, finite itself: differences of scores are numbers.
constexpr double lowestScore = -1e30;

class CompressedAttentionBlock {
public:
  CompressedAttentionBlock(BlockCode &code, moe::CompressedAttentionOp op, ValueRange operands,
                           Value result)
      : code(code), op(op), heads(op.getQuery().getType().getDimSize(1)),
        dim(op.getQuery().getType().getDimSize(2)),
        parts(llvm::divideCeil(dim, BlockCode::warpSize)), query(operands[0]),
        positions(operands[3]), tokenSequences(operands[4]),
        sinks(op.getSinks() ? operands[6] : Value()),
        indices(op.getIndices() ? operands.back() : Value()), result(result),
        cache(op.getCache().getType(), operands[1], operands[5]),
        entries(op.getEntries().getType(), operands[2], operands[5]) {}

  void build(Value workgroup) {
    token = code.divide(workgroup, heads);
    head = code.remainder(workgroup, heads);
    sequence = code.loadIndex(tokenSequences, token);
    Value scale = code.float32(op.getScale().convertToDouble());
    for (int64_t part = 0; part < parts; ++part)
      scaled.push_back(code.mul(loadPart(part, query,
                                         [&](Value i) {
                                           return SmallVector<Value>{token, head, i};
                                         }),
                                scale));

    Value position = code.loadIndex(positions, token), end = code.add(position, 1);
    Value first = code.maximum(code.sub(end, code.index(op.getWindow())), code.index(0));
    SmallVector<Value> state = {code.float32(lowestScore), code.float32(0)};
    state.append(parts, code.float32(0));
    state = visit(cache, code.sub(end, first), state, [&](Value i) { return code.add(first, i); });
    Value visible = countVisibleEntries(code, op, position);
    if (!indices) {
      state =
          visit(entries, visible, state, [&](Value i) { return getEntryPosition(code, op, i); });
    } else {
      state = visit(entries, code.dim(indices, 1), state, [&](Value i) {
        Value entry = code.loadIndex(indices, {token, i});
        Value place = getEntryPosition(code, op, entry);
        return code.select(code.isWithin(entry, visible), place, code.index(-1));
      });
    }
    join(state);
  }

private:
  Value getElement(int64_t part) { return code.add(code.lane(), part * BlockCode::warpSize); }

  /// This lane's element of a part of a row; zero behind its end.
  Value loadPart(int64_t part, Value memory, function_ref<SmallVector<Value>(Value i)> getPlace) {
    Value i = getElement(part);
    if ((part + 1) * BlockCode::warpSize <= dim)
      return code.loadFloat(memory, getPlace(i));
    return code.choose(
        code.isWithin(i, code.index(dim)), {code.getF32Type()},
        [&]() -> SmallVector<Value> { return {code.loadFloat(memory, getPlace(i))}; },
        [&]() -> SmallVector<Value> { return {code.float32(0)}; })[0];
  }

  /// Maximum, sum and weighted elements of this warp's rows among `count` more.
  SmallVector<Value> visit(const EntryRows &rows, Value count, ValueRange before,
                           function_ref<Value(Value i)> getPosition) {
    return code.loop(code.warp(), count, code.getWarps(), before,
                     [&](Value i, ValueRange carried) -> SmallVector<Value> {
                       EntryRows::Place place = rows.find(code, sequence, getPosition(i));
                       return code.choose(
                           place.known, carried.getTypes(),
                           [&] { return takeRow(rows, place, carried); },
                           [&] { return SmallVector<Value>(carried); });
                     });
  }

  SmallVector<Value> takeRow(const EntryRows &rows, const EntryRows::Place &place,
                             ValueRange carried) {
    SmallVector<Value> row;
    Value products = code.float32(0);
    for (int64_t part = 0; part < parts; ++part) {
      row.push_back(loadPart(part, rows.getMemory(), [&](Value i) {
        return SmallVector<Value>{place.block, code.add(place.start, i)};
      }));
      products = code.fma(row.back(), scaled[part], products);
    }
    Value score = code.sumOverLanes(products);
    Value maximum = code.maximum(score, carried[0]);
    Value fading = code.exp(code.sub(carried[0], maximum));
    Value weight = code.exp(code.sub(score, maximum));
    SmallVector<Value> next = {maximum, code.fma(carried[1], fading, weight)};
    for (int64_t part = 0; part < parts; ++part)
      next.push_back(code.fma(weight, row[part], code.mul(carried[2 + part], fading)));
    return next;
  }

  /// Adds the warps' sums up and writes the row.
  void join(ValueRange state) {
    int64_t warps = code.getWarps();
    Value maxima = code.allocateShared({warps}, code.getF32Type());
    Value sums = code.allocateShared({warps}, code.getF32Type());
    Value values = code.allocateShared({warps, dim}, code.getF32Type());
    code.when(code.compare(arith::CmpIPredicate::eq, code.lane(), code.index(0)), [&] {
      code.storeFloat(state[0], maxima, code.warp());
      code.storeFloat(state[1], sums, code.warp());
    });
    for (int64_t part = 0; part < parts; ++part) {
      Value i = getElement(part);
      code.when(code.isWithin(i, code.index(dim)), [&] {
        code.storeFloat(state[2 + part], values, {code.warp(), i});
      });
    }
    code.barrier();

    Value maximum = sinks ? code.loadFloat(sinks, head) : code.float32(lowestScore);
    Value sink = maximum;
    for (int64_t warp = 0; warp < warps; ++warp)
      maximum = code.maximum(code.loadFloat(maxima, code.index(warp)), maximum);
    Value sum = sinks ? code.exp(code.sub(sink, maximum)) : code.float32(0);
    SmallVector<Value> weights;
    for (int64_t warp = 0; warp < warps; ++warp) {
      weights.push_back(code.exp(code.sub(code.loadFloat(maxima, code.index(warp)), maximum)));
      sum = code.fma(code.loadFloat(sums, code.index(warp)), weights.back(), sum);
    }
    // A token whose table leads nowhere gets zeros.
    Value isEmpty = code.compare(arith::CmpFPredicate::OEQ, sum, code.float32(0));
    Value divisor = code.select(isEmpty, code.float32(1), sum);
    code.forEachOfThread(code.index(dim), [&](Value i) {
      Value total = code.float32(0);
      for (int64_t warp = 0; warp < warps; ++warp)
        total = code.fma(code.loadFloat(values, {code.index(warp), i}), weights[warp], total);
      code.storeFloat(code.divide(total, divisor), result, {token, head, i});
    });
  }

  BlockCode &code;
  moe::CompressedAttentionOp op;
  int64_t heads, dim, parts;
  Value query, positions, tokenSequences, sinks, indices, result;
  EntryRows cache, entries;
  Value token, head, sequence;
  SmallVector<Value> scaled; ///< this lane's elements of the query
};

class CUDACompressedAttentionStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.compressed_attention"; }
  StringRef getOpName() const override { return moe::CompressedAttentionOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto attention = dyn_cast<moe::CompressedAttentionOp>(op);
    return attention && target.isCUDA() &&
           attention.getQuery().getType().getDimSize(2) <= mostParts * BlockCode::warpSize;
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto attention = cast<moe::CompressedAttentionOp>(op);
    return countTiles(builder, op->getLoc(), attention.getQuery(), 1,
                      attention.getQuery().getType().getDimSize(1));
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    BlockCode code(op->getLoc(), builder, threads);
    CompressedAttentionBlock(code, cast<moe::CompressedAttentionOp>(op), operands, results[0])
        .build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDACompressedAttentionStrategy() {
  static const CUDACompressedAttentionStrategy strategy;
  return strategy;
}
