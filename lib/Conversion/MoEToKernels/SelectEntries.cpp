//===- SelectEntries.cpp - strategy that chooses the entries a token attends to ---------------===//
//
// A workgroup takes a token: scores of all entries that it sees, as ranks (integers in the order of
// the scores), then the rank of the last entry that is chosen, bit by bit, and the entries from it
// on in their order. No list of candidates that could be too short, and the same choice whatever
// else is in the step.
//
//===------------------------------------------------------------------------------------------===//

#include "EntryRanks.h"
#include "EntryRows.h"
#include "Strategies.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class SelectEntriesKernel {
public:
  SelectEntriesKernel(CodeBuilder &code, moe::SelectEntriesOp op, ValueRange operands, Value result,
                      Value scratchMemory, int64_t lanes)
      : code(code), op(op), lanes(lanes), heads(op.getQuery().getType().getDimSize(1)),
        dim(op.getQuery().getType().getDimSize(2)), wanted(op.getResult().getType().getDimSize(1)),
        query(operands[0]), weights(operands[1]), positions(operands[3]),
        tokenSequences(operands[4]), result(result),
        rows(op.getEntries().getType(), operands[2], operands[5]), scratch(code, scratchMemory),
        queries(scratch.allocate({heads, dim}, code.getF32Type())) {
    Value capacity = countEntryRanks(code, code.dim(operands[5], 1), op);
    ranks = memref::ViewOp::create(code, code.getLoc(),
                                   MemRefType::get({ShapedType::kDynamic}, code.getI32Type()),
                                   scratchMemory, code.index(scratch.getBytes()), capacity);
    most = capacity;
  }

  static int64_t countFixedBytes(moe::SelectEntriesOp op) {
    ScratchAllocator allocator;
    auto query = op.getQuery().getType();
    allocator.allocate({query.getDimSize(1), query.getDimSize(2)},
                       Float32Type::get(op.getContext()));
    return allocator.getBytes();
  }

  void build(Value token) {
    sequence = code.loadIndex(tokenSequences, token);
    Value position = code.loadIndex(positions, token);
    // As many as the table has room for: a wrong position must not lead behind the scratch.
    Value visible = code.minimum(countVisibleEntries(code, op, position), most);
    code.choose(
        code.compare(arith::CmpIPredicate::sle, visible, code.index(wanted)),
        [&] {
          code.loop(0, wanted, 1, [&](Value i) {
            Value isThere = code.compare(arith::CmpIPredicate::slt, i, visible);
            code.storeInt(code.select(isThere, code.toInt32(i), code.int32(-1)), result,
                          {token, i});
          });
        },
        [&] {
          loadQueries(token);
          code.loop(code.index(0), visible, 1, [&](Value entry) {
            code.storeInt(buildEntryRank(code, buildScore(token, entry)), ranks, entry);
          });
          choose(token, visible);
        });
  }

private:
  void loadQueries(Value token) {
    code.loop(0, heads, 1, [&](Value head) {
      code.panels(dim, lanes, [&](Value i, int64_t width) {
        code.storeFloats(code.loadFloats(query, {token, head, i}, width), queries, {head, i});
      });
    });
  }

  /// The score of an entry; the lowest one where the table leads nowhere.
  Value buildScore(Value token, Value entry) {
    EntryRows::Place place = rows.find(code, sequence, getEntryPosition(code, op, entry));
    return code.choose(
        place.known, {code.getF32Type()},
        [&] {
          return code.loop(
              code.index(0), code.index(heads), 1, {code.float32(0)},
              [&](Value head, ValueRange sum) -> SmallVector<Value> {
                Value product = buildProduct(head, place);
                // A NaN stays one.
                Value isNegative =
                    code.compare(arith::CmpFPredicate::OLT, product, code.float32(0));
                product = code.select(isNegative, code.float32(0), product);
                return {code.fma(code.loadFloat(weights, {token, head}), product, sum[0])};
              });
        },
        [&]() -> SmallVector<Value> {
          return {code.float32(-std::numeric_limits<double>::infinity())};
        })[0];
  }

  Value buildProduct(Value head, const EntryRows::Place &place) {
    auto multiply = [&](Value i, int64_t width, Value sums) {
      Value row = code.loadFloats(rows.getMemory(), {place.block, code.add(place.start, i)}, width);
      return code.fma(code.loadFloats(queries, {head, i}, width), row, sums);
    };
    int64_t whole = dim / lanes * lanes;
    Value sums = code.loop(code.index(0), code.index(whole), lanes, {code.floatSplat(0, lanes)},
                           [&](Value i, ValueRange carried) -> SmallVector<Value> {
                             return {multiply(i, lanes, carried[0])};
                           })
                     .front();
    Value sum = code.sumLanes(sums);
    if (int64_t rest = dim - whole)
      sum =
          code.add(sum, code.sumLanes(multiply(code.index(whole), rest, code.floatSplat(0, rest))));
    return sum;
  }

  void choose(Value token, Value visible) {
    Value lowest = buildLowestChosenRank(code, code.int32(wanted), [&](Value rank) {
      return countRanks(arith::CmpIPredicate::sge, rank, visible);
    });
    Value ties =
        code.sub(code.int32(wanted), countRanks(arith::CmpIPredicate::sgt, lowest, visible));
    // Places that are filled and ties that are left.
    code.loop(code.index(0), visible, 1, {code.index(0), ties},
              [&](Value entry, ValueRange carried) -> SmallVector<Value> {
                Value rank = code.loadInt(ranks, entry);
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

  Value countRanks(arith::CmpIPredicate predicate, Value rank, Value visible) {
    return code
        .loop(code.index(0), visible, 1, {code.int32(0)},
              [&](Value entry, ValueRange count) -> SmallVector<Value> {
                Value counts = code.compare(predicate, code.loadInt(ranks, entry), rank);
                return {code.add(count[0], code.select(counts, code.int32(1), code.int32(0)))};
              })
        .front();
  }

  CodeBuilder &code;
  moe::SelectEntriesOp op;
  int64_t lanes, heads, dim, wanted;
  Value query, weights, positions, tokenSequences, result;
  EntryRows rows;
  ScratchAllocator scratch;
  Value queries; ///< f32 [heads][dim]
  Value ranks;   ///< i32 [entries that the table has room for]
  Value most, sequence;
};

class SelectEntriesStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.select_entries"; }
  StringRef getOpName() const override { return moe::SelectEntriesOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::SelectEntriesOp>(op) && target.isCPU();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return countTiles(builder, op->getLoc(), cast<moe::SelectEntriesOp>(op).getQuery(), 1, 1);
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &) const override {
    auto select = cast<moe::SelectEntriesOp>(op);
    return countEntryRankBytes(builder, select, SelectEntriesKernel::countFixedBytes(select),
                               /*copies=*/1);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    SelectEntriesKernel(code, cast<moe::SelectEntriesOp>(op), operands, results[0], scratch,
                        target.getVectorBytes() / 4)
        .build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getSelectEntriesStrategy() {
  static const SelectEntriesStrategy strategy;
  return strategy;
}
