//===- DeltaRule.cpp - a block computes some columns of one head of one sequence --------------===//
//
// The recurrence as it is defined, with the matrix in registers: a few neighbouring lanes share a
// column, each with every so-manieth row of it. What all columns need of a token (normalised key
// and query, decay factors) is prepared in shared memory, a token by each warp.
//
//===------------------------------------------------------------------------------------------===//

#include "../SequencePart.h"
#include "../Strategies.h"
#include "BlockCode.h"
#include "Strategies.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t threads = 256;
constexpr int64_t lanesOfColumn = 4;
constexpr int64_t columnsOfBlock = threads / lanesOfColumn;
/// Rows of a lane, which lie in registers.
constexpr int64_t mostRows = 64;
/// Partial sums of a lane, so that one addition need not wait for the other.
constexpr int64_t partialSums = 4;

class DeltaRuleBlock {
public:
  DeltaRuleBlock(BlockCode &code, moe::DeltaRuleOp op, ValueRange operands, Value result)
      : code(code), op(op), heads(op.getValue().getType().getDimSize(1)),
        group(heads / op.getQuery().getType().getDimSize(1)),
        keyDim(op.getQuery().getType().getDimSize(2)),
        valueDim(op.getValue().getType().getDimSize(2)),
        rows(llvm::divideCeil(keyDim, lanesOfColumn)), paddedKeyDim(rows * lanesOfColumn),
        query(operands[0]), key(operands[1]), value(operands[2]), decay(operands[3]),
        beta(operands[4]),
        state(operands[5]), sequences{operands[5], operands[6], operands[7], operands[8]},
        result(result) {}

  static int64_t countPieces(moe::DeltaRuleOp op) {
    return llvm::divideCeil(op.getValue().getType().getDimSize(2), columnsOfBlock);
  }

  void build(Value workgroup) {
    int64_t pieces = countPieces(op), warps = code.getWarps();
    Value piece = code.remainder(workgroup, pieces), rest = code.divide(workgroup, pieces);
    head = code.remainder(rest, heads);
    keyHead = code.divide(head, group);
    laneOfColumn = code.remainder(code.thread(), lanesOfColumn);
    columnOfBlock = code.divide(code.thread(), lanesOfColumn);
    firstColumn = code.mul(piece, columnsOfBlock);
    column = code.add(firstColumn, columnOfBlock);
    Type f32 = code.getF32Type();
    queries = code.allocateShared({warps, paddedKeyDim}, f32);
    keys = code.allocateShared({warps, paddedKeyDim}, f32);
    factors = code.allocateShared({warps, paddedKeyDim}, f32);
    values = code.allocateShared({warps, columnsOfBlock}, f32);
    Value sequence = code.divide(rest, heads);
    withSequence(code, sequences, sequence, code.dim(query, 0), [&](const SequencePart &part) {
      SmallVector<Value> matrix = code.loop(
          part.first, part.end, warps, loadState(part), [&](Value first, ValueRange carried) {
            Value count = code.minimum(code.sub(part.end, first), code.index(warps));
            code.when(code.isWithin(code.warp(), count),
                      [&] { prepare(code.add(first, code.warp()), code.warp()); });
            code.barrier();
            SmallVector<Value> next =
                code.loop(code.index(0), count, 1, carried, [&](Value row, ValueRange before) {
                  return update(code.add(first, row), row, before);
                });
            code.barrier(); // before other tokens take the place of these
            return next;
          });
      storeState(part, matrix);
    });
  }

private:
  Value getRow(int64_t i) { return code.add(laneOfColumn, i * lanesOfColumn); }
  /// Whether row `i` of this lane and its column are part of the matrix.
  Value exists(int64_t i) {
    return code.both(code.isWithin(getRow(i), code.index(keyDim)),
                     code.isWithin(column, code.index(valueDim)));
  }

  SmallVector<Value> loadState(const SequencePart &part) {
    SmallVector<Value> matrix;
    Value someColumn = code.minimum(column, code.index(valueDim - 1));
    for (int64_t i = 0; i < rows; ++i) {
      Value someRow = code.minimum(getRow(i), code.index(keyDim - 1));
      Value element = code.loadFloat(state, {part.slot, head, someRow, someColumn});
      Value counts = code.select(part.begins, code.boolean(false), exists(i));
      matrix.push_back(code.select(counts, element, code.float32(0)));
    }
    return matrix;
  }

  void storeState(const SequencePart &part, ValueRange matrix) {
    for (auto [i, element] : llvm::enumerate(matrix))
      code.when(exists(i), [&] {
        code.storeFloat(element, state, {part.slot, head, getRow(i), column});
      });
  }

  /// The same in every lane of the warp: 1 / sqrt(sum of squares + epsilon), or 1.
  Value findNormFactor(Value tensor, Value token) {
    if (!op.getNormEpsilon())
      return code.float32(1);
    Value sum = code.loop(code.lane(), code.index(keyDim), BlockCode::warpSize, {code.float32(0)},
                          [&](Value i, ValueRange sums) -> SmallVector<Value> {
                            Value x = code.loadFloat(tensor, {token, keyHead, i});
                            return {code.fma(x, x, sums[0])};
                          })
                    .front();
    Value epsilon = code.float32(op.getNormEpsilon()->convertToDouble());
    sum = code.add(code.sumOverLanes(sum), epsilon);
    return code.divide(code.float32(1), math::SqrtOp::create(code, code.getLoc(), sum));
  }

  /// A warp's work: what the block needs of a token. Rows behind the last one are zeros.
  void prepare(Value token, Value row) {
    Value keyFactor = findNormFactor(key, token);
    Value queryFactor =
        code.mul(findNormFactor(query, token), code.float32(op.getScale().convertToDouble()));
    code.loop(code.lane(), code.index(paddedKeyDim), BlockCode::warpSize, [&](Value i) {
      Value known = code.isWithin(i, code.index(keyDim));
      Value some = code.minimum(i, code.index(keyDim - 1));
      auto store = [&](Value x, Value shared) {
        code.storeFloat(code.select(known, x, code.float32(0)), shared, {row, i});
      };
      store(code.mul(code.loadFloat(query, {token, keyHead, some}), queryFactor), queries);
      store(code.mul(code.loadFloat(key, {token, keyHead, some}), keyFactor), keys);
      bool perChannel = op.getDecay().getType().getRank() == 3;
      store(code.exp(perChannel ? code.loadFloat(decay, {token, head, some})
                                : code.loadFloat(decay, {token, head})),
            factors);
    });
    code.loop(code.lane(), code.index(columnsOfBlock), BlockCode::warpSize, [&](Value i) {
      Value some = code.minimum(code.add(firstColumn, i), code.index(valueDim - 1));
      code.storeFloat(code.loadFloat(value, {token, head, some}), values, {row, i});
    });
  }

  /// sum of factors[row] * matrix over the rows of the column, in each of its lanes.
  Value sumOverRows(Value shared, Value row, ValueRange matrix) {
    SmallVector<Value> sums(std::min(partialSums, rows), code.float32(0));
    for (auto [i, element] : llvm::enumerate(matrix)) {
      Value &sum = sums[i % sums.size()];
      sum = code.fma(code.loadFloat(shared, {row, getRow(i)}), element, sum);
    }
    Value sum = sums[0];
    for (Value other : llvm::drop_begin(sums))
      sum = code.add(sum, other);
    return code.sumOverLanes(sum, lanesOfColumn);
  }

  /// Takes the matrix through one token. All threads take part: lanes exchange sums.
  SmallVector<Value> update(Value token, Value row, ValueRange before) {
    SmallVector<Value> matrix;
    for (auto [i, element] : llvm::enumerate(before))
      matrix.push_back(code.mul(element, code.loadFloat(factors, {row, getRow(i)})));
    Value error =
        code.sub(code.loadFloat(values, {row, columnOfBlock}), sumOverRows(keys, row, matrix));
    Value correction = code.mul(code.loadFloat(beta, {token, head}), error);
    for (auto [i, element] : llvm::enumerate(matrix))
      element = code.fma(code.loadFloat(keys, {row, getRow(i)}), correction, element);
    Value sum = sumOverRows(queries, row, matrix);
    Value isFirst = code.compare(arith::CmpIPredicate::eq, laneOfColumn, code.index(0));
    code.when(code.both(isFirst, code.isWithin(column, code.index(valueDim))), [&] {
      code.storeFloat(sum, result, {token, head, column});
    });
    return matrix;
  }

  BlockCode &code;
  moe::DeltaRuleOp op;
  int64_t heads, group, keyDim, valueDim;
  int64_t rows, paddedKeyDim; ///< rows of a lane, and of all lanes of a column
  Value query, key, value, decay, beta, state;
  SequenceOperands sequences;
  Value result;
  Value queries, keys, factors, values; ///< shared, a row for each warp's token
  Value head, keyHead, firstColumn;     ///< of the block
  Value laneOfColumn, columnOfBlock, column;
};

class CUDADeltaRuleStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.delta_rule"; }
  StringRef getOpName() const override { return moe::DeltaRuleOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto rule = dyn_cast<moe::DeltaRuleOp>(op);
    return rule && target.isCUDA() &&
           rule.getQuery().getType().getDimSize(2) <= mostRows * lanesOfColumn;
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 2; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return threads; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto rule = cast<moe::DeltaRuleOp>(op);
    int64_t heads = rule.getValue().getType().getDimSize(1);
    return countTiles(builder, op->getLoc(), rule.getStateSlots(), 1,
                      heads * DeltaRuleBlock::countPieces(rule));
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    BlockCode code(op->getLoc(), builder, threads);
    DeltaRuleBlock(code, cast<moe::DeltaRuleOp>(op), operands, results[0]).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCUDADeltaRuleStrategy() {
  static const CUDADeltaRuleStrategy strategy;
  return strategy;
}
