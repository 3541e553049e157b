//===- SelectEntries.cpp - a block chooses the entries a token attends to ---------------------===//
//
// As on a CPU: see ../SelectEntries.cpp. A warp takes an entry, its lanes the heads; threads count
// ranks of entries that are neighbours. Ranks lie in the launch's scratch, so there is a limited
// number of blocks, and each takes tokens in turn.
//
//===------------------------------------------------------------------------------------------===//

#include "../EntryRanks.h"
#include "../EntryRows.h"
#include "../Strategies.h"
#include "BlockCode.h"
#include "Strategies.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 256;
constexpr int64_t mostBlocks = 128;
constexpr int64_t mostSharedBytes = 44 * 1024;

class SelectEntriesBlock {
public:
  SelectEntriesBlock(BlockCode &code, moe::SelectEntriesOp op, ValueRange operands, Value result,
                     Value scratch, Value workgroup)
      : code(code), op(op), heads(op.getQuery().getType().getDimSize(1)),
        dim(op.getQuery().getType().getDimSize(2)), wanted(op.getResult().getType().getDimSize(1)),
        query(operands[0]), weights(operands[1]), positions(operands[3]),
        tokenSequences(operands[4]), result(result),
        rows(op.getEntries().getType(), operands[2], operands[5]),
        // One element more, so that lanes with the same element of other heads use other banks.
        queries(code.allocateShared({heads, dim + 1}, code.getF32Type())),
        rowsOfWarps(code.allocateShared({code.getWarps(), dim}, code.getF32Type())),
        counts(code.allocateShared({2, threads}, code.getI32Type())),
        most(countEntryRanks(code, code.dim(operands[5], 1), op)),
        firstRank(code.mul(workgroup, most)) {
    Value all = code.mul(most, mostBlocks);
    ranks = memref::ViewOp::create(code, code.getLoc(),
                                   MemRefType::get({ShapedType::kDynamic}, code.getI32Type()),
                                   scratch, code.index(0), all);
  }

  static int64_t countSharedBytes(moe::SelectEntriesOp op) {
    int64_t heads = op.getQuery().getType().getDimSize(1),
            dim = op.getQuery().getType().getDimSize(2);
    return 4 * (heads * (dim + 1) + threads / BlockCode::warpSize * dim + 2 * threads);
  }

  void build(Value token) {
    sequence = code.loadIndex(tokenSequences, token);
    Value position = code.loadIndex(positions, token);
    visible = code.minimum(countVisibleEntries(code, op, position), most);
    code.choose(
        code.compare(arith::CmpIPredicate::sle, visible, code.index(wanted)),
        [&] {
          code.forEachOfThread(code.index(wanted), [&](Value i) {
            Value isThere = code.compare(arith::CmpIPredicate::slt, i, visible);
            code.storeInt(code.select(isThere, code.toInt32(i), code.int32(-1)), result,
                          {token, i});
          });
        },
        [&] {
          buildRanks(token);
          choose(token);
          code.barrier(); // before the next token takes the place of this one
        });
  }

private:
  Value loadRank(Value entry) { return code.loadInt(ranks, code.add(firstRank, entry)); }

  void buildRanks(Value token) {
    code.forEachOfThread(code.index(heads * dim), [&](Value i) {
      Value head = code.divide(i, dim), element = code.remainder(i, dim);
      code.storeFloat(code.loadFloat(query, {token, head, element}), queries, {head, element});
    });
    code.barrier();
    int64_t warps = code.getWarps();
    // All warps make as many steps: they meet at barriers.
    code.loop(code.index(0), visible, warps, [&](Value first) {
      Value entry = code.add(first, code.warp());
      EntryRows::Place place = rows.find(code, sequence, getEntryPosition(code, op, entry));
      place.known = code.both(place.known, code.isWithin(entry, visible));
      code.when(place.known, [&] {
        code.loop(code.lane(), code.index(dim), BlockCode::warpSize, [&](Value i) {
          Value x = code.loadFloat(rows.getMemory(), {place.block, code.add(place.start, i)});
          code.storeFloat(x, rowsOfWarps, {code.warp(), i});
        });
      });
      code.barrier();
      Value score = code.sumOverLanes(code.choose(
          place.known, {code.getF32Type()},
          [&]() -> SmallVector<Value> { return {buildPartOfScore(token)}; },
          [&]() -> SmallVector<Value> {
            return {code.float32(-std::numeric_limits<double>::infinity())};
          })[0]);
      Value isWriter = code.both(code.compare(arith::CmpIPredicate::eq, code.lane(), code.index(0)),
                                 code.isWithin(entry, visible));
      code.when(isWriter, [&] {
        code.storeInt(buildEntryRank(code, score), ranks, code.add(firstRank, entry));
      });
      code.barrier();
    });
  }

  /// The sum over this lane's heads.
  Value buildPartOfScore(Value token) {
    return code.loop(code.lane(), code.index(heads), BlockCode::warpSize, {code.float32(0)},
                     [&](Value head, ValueRange sum) -> SmallVector<Value> {
                       Value product =
                           code.loop(code.index(0), code.index(dim), 1, {code.float32(0)},
                                     [&](Value i, ValueRange carried) -> SmallVector<Value> {
                                       Value x = code.loadFloat(queries, {head, i});
                                       Value y = code.loadFloat(rowsOfWarps, {code.warp(), i});
                                       return {code.fma(x, y, carried[0])};
                                     })[0];
                       // A NaN stays one.
                       Value isNegative =
                           code.compare(arith::CmpFPredicate::OLT, product, code.float32(0));
                       product = code.select(isNegative, code.float32(0), product);
                       return {code.fma(code.loadFloat(weights, {token, head}), product, sum[0])};
                     })[0];
  }

  void choose(Value token) {
    Value lowest = buildLowestChosenRank(code, code.int32(wanted), [&](Value rank) {
      Value count = code.loop(code.thread(), visible, threads, {code.int32(0)},
                              [&](Value entry, ValueRange before) -> SmallVector<Value> {
                                Value isFrom =
                                    code.compare(arith::CmpIPredicate::sge, loadRank(entry), rank);
                                return {count1(before[0], isFrom)};
                              })[0];
      return sumOfBlock(count);
    });
    // Each thread takes its own part of the entries, in order.
    Value share = code.divide(code.add(visible, threads - 1), threads);
    Value first = code.minimum(code.mul(code.thread(), share), visible);
    Value end = code.minimum(code.add(first, share), visible);
    SmallVector<Value> own = code.loop(
        first, end, 1, {code.int32(0), code.int32(0)},
        [&](Value entry, ValueRange before) -> SmallVector<Value> {
          Value rank = loadRank(entry);
          return {count1(before[0], code.compare(arith::CmpIPredicate::sgt, rank, lowest)),
                  count1(before[1], code.compare(arith::CmpIPredicate::eq, rank, lowest))};
        });
    Value zero = code.index(0), one = code.index(1);
    code.storeInt(own[0], counts, {zero, code.thread()});
    code.storeInt(own[1], counts, {one, code.thread()});
    code.barrier();
    auto sum = [&](Value row, Value until) {
      return code.loop(zero, until, 1, {code.int32(0)},
                       [&](Value i, ValueRange before) -> SmallVector<Value> {
                         return {code.add(before[0], code.loadInt(counts, {row, i}))};
                       })[0];
    };
    Value ties = code.sub(code.int32(wanted), sum(zero, code.index(threads)));
    Value largerBefore = sum(zero, code.thread()), tiesBefore = sum(one, code.thread());
    Value filled = code.add(largerBefore, code.minimum(tiesBefore, ties));
    code.loop(first, end, 1, {code.toIndex(filled), code.sub(ties, tiesBefore)},
              [&](Value entry, ValueRange carried) -> SmallVector<Value> {
                Value rank = loadRank(entry);
                Value isTie = code.compare(arith::CmpIPredicate::eq, rank, lowest);
                Value isLeft = code.compare(arith::CmpIPredicate::sgt, carried[1], code.int32(0));
                Value isLarger = code.compare(arith::CmpIPredicate::sgt, rank, lowest);
                Value isTaken = code.select(isTie, isLeft, isLarger);
                code.when(isTaken, [&] {
                  code.storeInt(code.toInt32(entry), result, {token, carried[0]});
                });
                Value next = code.select(isTaken, code.add(carried[0], 1), carried[0]);
                Value rest = code.select(isTie, code.sub(carried[1], code.int32(1)), carried[1]);
                return {next, rest};
              });
  }

  Value count1(Value count, Value condition) {
    return code.add(count, code.select(condition, code.int32(1), code.int32(0)));
  }

  /// The sum of all threads' numbers, in every thread.
  Value sumOfBlock(Value number) {
    Value zero = code.index(0);
    Value sum = code.sumOverLanes(number);
    code.barrier(); // nobody reads sums from before any more
    code.when(code.compare(arith::CmpIPredicate::eq, code.lane(), zero), [&] {
      code.storeInt(sum, counts, {zero, code.warp()});
    });
    code.barrier();
    Value total = code.loadInt(counts, {zero, zero});
    for (int64_t warp = 1; warp < code.getWarps(); ++warp)
      total = code.add(total, code.loadInt(counts, {zero, code.index(warp)}));
    code.barrier();
    return total;
  }

  BlockCode &code;
  moe::SelectEntriesOp op;
  int64_t heads, dim, wanted;
  Value query, weights, positions, tokenSequences, result;
  EntryRows rows;
  Value queries, rowsOfWarps, counts; ///< shared
  Value most, firstRank, ranks;       ///< ranks of this block begin at firstRank
  Value sequence, visible;
};

class CUDASelectEntriesStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.select_entries"; }
  StringRef getOpName() const override { return moe::SelectEntriesOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto select = dyn_cast<moe::SelectEntriesOp>(op);
    return select && target.isCUDA() &&
           SelectEntriesBlock::countSharedBytes(select) <= mostSharedBytes;
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    OpFoldResult tokens =
        countTiles(builder, op->getLoc(), cast<moe::SelectEntriesOp>(op).getQuery(), 1, 1);
    if (std::optional<int64_t> constant = getConstantIntValue(tokens))
      return builder.getIndexAttr(std::min(*constant, mostBlocks));
    CodeBuilder code(op->getLoc(), builder);
    return code.minimum(cast<Value>(tokens), code.index(mostBlocks));
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &) const override {
    return countEntryRankBytes(builder, cast<moe::SelectEntriesOp>(op), 0, mostBlocks);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &) const override {
    BlockCode code(op->getLoc(), builder, threads);
    SelectEntriesBlock block(code, cast<moe::SelectEntriesOp>(op), operands, results[0], scratch,
                             workgroup);
    code.loop(workgroup, code.dim(operands[0], 0), mostBlocks,
              [&](Value token) { block.build(token); });
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDASelectEntriesStrategy() {
  static const CUDASelectEntriesStrategy strategy;
  return strategy;
}
