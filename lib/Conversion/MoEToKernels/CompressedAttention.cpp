//===- CompressedAttention.cpp - strategy for attention to a window and compressed entries ----===//
//
// A workgroup takes some heads of one token. The rows of the window and then the entries go by in
// chunks: scores of a few heads, the new running maximum, the probabilities relative to it, and the
// products with the same rows; sums that were made under the old maximum are scaled. The order of
// the rows depends on the token alone, so that its result is the same whatever else is in the step.
//
//===------------------------------------------------------------------------------------------===//

#include "EntryRows.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Rows between two looks at the running maximum; a multiple of every number of lanes.
constexpr int64_t chunk = 32;
/// Heads whose sums are in registers together.
constexpr int64_t headBlock = 4;
/// Below every score that occurs, finite itself: differences of scores are numbers.
constexpr double lowestScore = -1e30;

struct CompressedAttentionShape {
  CompressedAttentionShape(moe::CompressedAttentionOp op, const TargetDescription &target)
      : heads(op.getQuery().getType().getDimSize(1)), dim(op.getQuery().getType().getDimSize(2)),
        lanes(target.getVectorBytes() / 4), partHeads(std::min<int64_t>(heads, 8)) {
    while (heads % partHeads != 0)
      --partHeads;
  }

  int64_t heads, dim, lanes;
  int64_t partHeads; ///< of a workgroup
};

struct CompressedAttentionScratch {
  CompressedAttentionScratch(Builder &builder, const CompressedAttentionShape &shape,
                             ScratchAllocator allocator) {
    Type f32 = builder.getF32Type();
    query = allocator.allocate({shape.partHeads, shape.dim}, f32);
    output = allocator.allocate({shape.partHeads, shape.dim}, f32);
    maxima = allocator.allocate({shape.partHeads}, f32);
    sums = allocator.allocate({shape.partHeads}, f32);
    scores = allocator.allocate({headBlock, chunk}, f32);
    blocks = allocator.allocate({chunk}, builder.getIndexType());
    starts = allocator.allocate({chunk}, builder.getIndexType());
    bytes = allocator.getBytes();
  }

  Value query;          ///< scaled
  Value output;         ///< sums of probability * row
  Value maxima, sums;   ///< running maxima, and sums of probabilities
  Value scores;         ///< of a chunk, then probabilities
  Value blocks, starts; ///< where the chunk's rows lie
  int64_t bytes;
};

class CompressedAttentionKernel {
public:
  CompressedAttentionKernel(CodeBuilder &code, moe::CompressedAttentionOp op, ValueRange operands,
                            Value result, Value scratchMemory, const TargetDescription &target)
      : code(code), op(op), shape(op, target), query(operands[0]), positions(operands[3]),
        tokenSequences(operands[4]), sinks(op.getSinks() ? operands[6] : Value()),
        indices(op.getIndices() ? operands.back() : Value()), result(result),
        cache(op.getCache().getType(), operands[1], operands[5]),
        entries(op.getEntries().getType(), operands[2], operands[5]),
        scratch(code, shape, ScratchAllocator(code, scratchMemory)) {}

  void build(Value workgroup) {
    int64_t parts = shape.heads / shape.partHeads;
    token = code.divide(workgroup, parts);
    firstHead = code.mul(code.remainder(workgroup, parts), shape.partHeads);
    sequence = code.loadIndex(tokenSequences, token);
    start();
    Value position = code.loadIndex(positions, token), end = code.add(position, 1);
    Value first = code.maximum(code.sub(end, code.index(op.getWindow())), code.index(0));
    visit(cache, code.sub(end, first), [&](Value i) { return code.add(first, i); });
    Value visible = countVisibleEntries(code, op, position);
    if (!indices) {
      visit(entries, visible, [&](Value i) { return getEntryPosition(code, op, i); });
    } else {
      visit(entries, code.dim(indices, 1), [&](Value i) {
        Value entry = code.loadIndex(indices, {token, i});
        Value place = getEntryPosition(code, op, entry);
        return code.select(code.isWithin(entry, visible), place, code.index(-1));
      });
    }
    finish();
  }

private:
  /// Queries, scaled, and sums that hold the sinks at most.
  void start() {
    Value scale = code.float32(op.getScale().convertToDouble());
    code.loop(0, shape.partHeads, 1, [&](Value head) {
      Value from = code.add(firstHead, head);
      code.panels(shape.dim, shape.lanes, [&](Value i, int64_t width) {
        Value x = code.loadFloats(query, {token, from, i}, width);
        code.storeFloats(code.mul(x, code.broadcast(scale, width)), scratch.query, {head, i});
        code.storeFloats(code.floatSplat(0, width), scratch.output, {head, i});
      });
      code.storeFloat(sinks ? code.loadFloat(sinks, from) : code.float32(lowestScore),
                      scratch.maxima, head);
      code.storeFloat(code.float32(sinks ? 1 : 0), scratch.sums, head);
    });
  }

  /// Takes `count` rows of a cache in.
  void visit(const EntryRows &rows, Value count, function_ref<Value(Value i)> getPosition) {
    code.loop(code.index(0), count, chunk, [&](Value from) {
      Value end = code.minimum(code.add(from, chunk), count);
      Value known =
          code.loop(from, end, 1, {code.index(0)},
                    [&](Value i, ValueRange before) -> SmallVector<Value> {
                      return {keepPlace(rows.find(code, sequence, getPosition(i)), before[0])};
                    })
              .front();
      int64_t whole = shape.partHeads / headBlock * headBlock;
      if (whole > 0)
        code.loop(0, whole, headBlock,
                  [&](Value head) { buildChunk(rows, known, head, headBlock); });
      if (whole < shape.partHeads)
        buildChunk(rows, known, code.index(whole), shape.partHeads - whole);
    });
  }

  /// Writes a place that is known behind the `count` others. -> how many there are now.
  Value keepPlace(const EntryRows::Place &place, Value count) {
    code.when(place.known, [&] {
      code.storeInt(place.block, scratch.blocks, count);
      code.storeInt(place.start, scratch.starts, count);
    });
    return code.select(place.known, code.add(count, 1), count);
  }

  Value loadRow(const EntryRows &rows, Value row, Value i, int64_t width) {
    Value block = code.loadInt(scratch.blocks, row);
    Value begin = code.loadInt(scratch.starts, row);
    return code.loadFloats(rows.getMemory(), {block, code.add(begin, i)}, width);
  }

  void buildChunk(const EntryRows &rows, Value known, Value head, int64_t count) {
    SmallVector<Value> maxima = buildScores(rows, known, head, count), factors;
    for (int64_t h = 0; h < count; ++h) {
      Value here = code.add(head, h);
      Value before = code.loadFloat(scratch.maxima, here);
      Value maximum = code.maximum(before, maxima[h]);
      code.storeFloat(maximum, scratch.maxima, here);
      Value factor = code.exp(code.sub(before, maximum));
      Value sum = code.fma(code.loadFloat(scratch.sums, here), factor,
                           buildProbabilities(code.index(h), maximum));
      code.storeFloat(sum, scratch.sums, here);
      factors.push_back(factor);
    }
    code.panels(shape.dim, shape.lanes, [&](Value i, int64_t width) {
      SmallVector<Value> sums;
      for (int64_t h = 0; h < count; ++h) {
        Value before = code.loadFloats(scratch.output, {code.add(head, h), i}, width);
        sums.push_back(code.mul(before, code.broadcast(factors[h], width)));
      }
      sums = code.loop(code.index(0), known, 1, sums, [&](Value row, ValueRange carried) {
        Value values = loadRow(rows, row, i, width);
        SmallVector<Value> next;
        for (int64_t h = 0; h < count; ++h) {
          Value probability = code.loadFloat(scratch.scores, {code.index(h), row});
          next.push_back(code.fma(code.broadcast(probability, width), values, carried[h]));
        }
        return next;
      });
      for (int64_t h = 0; h < count; ++h)
        code.storeFloats(sums[h], scratch.output, {code.add(head, h), i});
    });
  }

  /// Scores of the chunk's rows, and the lowest one behind them. -> the largest ones.
  SmallVector<Value> buildScores(const EntryRows &rows, Value known, Value head, int64_t count) {
    int64_t lanes = shape.lanes, whole = shape.dim / lanes * lanes;
    for (int64_t h = 0; h < count; ++h)
      for (int64_t i = 0; i < chunk; i += lanes)
        code.storeFloats(code.floatSplat(lowestScore, lanes), scratch.scores,
                         {code.index(h), code.index(i)});
    auto multiply = [&](Value row, Value i, int64_t width, ValueRange before) {
      Value keys = loadRow(rows, row, i, width);
      SmallVector<Value> products;
      for (int64_t h = 0; h < count; ++h) {
        Value queries = code.loadFloats(scratch.query, {code.add(head, h), i}, width);
        products.push_back(code.fma(queries, keys, before[h]));
      }
      return products;
    };
    SmallVector<Value> lowest(count, code.float32(lowestScore));
    return code.loop(code.index(0), known, 1, lowest, [&](Value row, ValueRange before) {
      SmallVector<Value> zeros(count, code.floatSplat(0, lanes));
      SmallVector<Value> products =
          code.loop(code.index(0), code.index(whole), lanes, zeros,
                    [&](Value i, ValueRange carried) { return multiply(row, i, lanes, carried); });
      SmallVector<Value> rest;
      if (whole < shape.dim)
        rest = multiply(row, code.index(whole), shape.dim - whole,
                        SmallVector<Value>(count, code.floatSplat(0, shape.dim - whole)));
      SmallVector<Value> maxima;
      for (int64_t h = 0; h < count; ++h) {
        Value score = code.sumLanes(products[h]);
        if (!rest.empty())
          score = code.add(score, code.sumLanes(rest[h]));
        code.storeFloat(score, scratch.scores, {code.index(h), row});
        maxima.push_back(code.maximum(before[h], score));
      }
      return maxima;
    });
  }

  /// Puts probabilities in the place of scores. -> their sum.
  Value buildProbabilities(Value head, Value maximum) {
    Value highest = code.broadcast(maximum, shape.lanes), sums = code.floatSplat(0, shape.lanes);
    for (int64_t i = 0; i < chunk; i += shape.lanes) {
      Value scores = code.loadFloats(scratch.scores, {head, code.index(i)}, shape.lanes);
      // Behind the rows there is nothing, even when every score is as low as what stands there.
      Value isRow = code.compare(arith::CmpFPredicate::UGT, scores,
                                 code.floatSplat(lowestScore, shape.lanes));
      Value probability =
          code.select(isRow, code.exp(code.sub(scores, highest)), code.floatSplat(0, shape.lanes));
      code.storeFloats(probability, scratch.scores, {head, code.index(i)});
      sums = code.add(sums, probability);
    }
    return code.sumLanes(sums);
  }

  void finish() {
    code.loop(0, shape.partHeads, 1, [&](Value head) {
      Value sum = code.loadFloat(scratch.sums, head);
      // A token whose table leads nowhere gets zeros.
      Value isEmpty = code.compare(arith::CmpFPredicate::OEQ, sum, code.float32(0));
      Value divisor = code.select(isEmpty, code.float32(1), sum);
      code.panels(shape.dim, shape.lanes, [&](Value i, int64_t width) {
        Value x = code.loadFloats(scratch.output, {head, i}, width);
        code.storeFloats(code.divide(x, code.broadcast(divisor, width)), result,
                         {token, code.add(firstHead, head), i});
      });
    });
  }

  CodeBuilder &code;
  moe::CompressedAttentionOp op;
  CompressedAttentionShape shape;
  Value query, positions, tokenSequences, sinks, indices, result;
  EntryRows cache, entries;
  CompressedAttentionScratch scratch;
  Value token, firstHead, sequence;
};

class CompressedAttentionStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.compressed_attention"; }
  StringRef getOpName() const override { return moe::CompressedAttentionOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::CompressedAttentionOp>(op) && target.isCPU();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &target) const override {
    auto attention = cast<moe::CompressedAttentionOp>(op);
    CompressedAttentionShape shape(attention, target);
    return countTiles(builder, op->getLoc(), attention.getQuery(), 1,
                      shape.heads / shape.partHeads);
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &target) const override {
    CompressedAttentionShape shape(cast<moe::CompressedAttentionOp>(op), target);
    return builder.getIndexAttr(
        CompressedAttentionScratch(builder, shape, ScratchAllocator()).bytes);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    CompressedAttentionKernel(code, cast<moe::CompressedAttentionOp>(op), operands, results[0],
                              scratch, target)
        .build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getCompressedAttentionStrategy() {
  static const CompressedAttentionStrategy strategy;
  return strategy;
}
