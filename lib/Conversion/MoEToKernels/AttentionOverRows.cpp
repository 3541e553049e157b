//===- AttentionOverRows.cpp - strategy for attention over gathered rows of a cache -----------===//
//
// For caches whose keys hold their values, and for lists of positions. A workgroup takes one token
// and some heads of one kv head. Rows that the token sees are copied, a chunk at a time, one behind
// the other, as f32: keys and values of any type, at any positions, then are dense rows that all
// heads share. Chunks are counted from the first row that the token sees, so that its sums are the
// same whatever else is in the step.
//
//===------------------------------------------------------------------------------------------===//

#include "CacheRows.h"
#include "Rotary.h"
#include "Strategies.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Below every score that occurs, finite itself: differences of scores are numbers.
constexpr double lowestScore = -1e30;
/// Lanes of a vector, of which two 8-lane registers make one where the target has no wider ones.
constexpr int64_t lanes = 16;
/// Rows gathered at a time; a whole number of vectors of scores.
constexpr int64_t chunk = 32;
/// Most heads of a workgroup: enough to make up for the copies.
constexpr int64_t mostHeads = 16;

struct RowsShape {
  explicit RowsShape(moe::AttentionOp op) : cache(op.getCache().getType()) {
    heads = op.getQuery().getType().getDimSize(1);
    group = heads / cache.getKvHeads();
    // The largest number of heads that divides the group: no workgroup is smaller than others.
    partHeads = std::min(group, mostHeads);
    while (group % partHeads != 0)
      --partHeads;
    together = partHeads % 4 == 0 ? 4 : partHeads % 2 == 0 ? 2 : 1;
  }

  int64_t getParts() const { return heads / partHeads; }

  moe::CacheType cache;
  int64_t heads, group;
  int64_t partHeads; ///< heads of a workgroup
  int64_t together;  ///< heads whose sums are in registers together
};

struct RowsScratch {
  RowsScratch(moe::AttentionOp op, const RowsShape &shape, ScratchAllocator allocator)
      : rotary(op.getRotaryAttr(), lanes, allocator) {
    Type f32 = Float32Type::get(op.getContext());
    query = allocator.allocate({shape.partHeads, shape.cache.getKeyDim()}, f32);
    keys = allocator.allocate({chunk, shape.cache.getKeyDim()}, f32);
    values = keys;
    if (!shape.cache.isShared())
      values = allocator.allocate({chunk, shape.cache.getValueDim()}, f32);
    scores = allocator.allocate({shape.partHeads, chunk}, f32);
    maxima = allocator.allocate({shape.partHeads}, f32);
    sums = allocator.allocate({shape.partHeads}, f32);
    factors = allocator.allocate({shape.partHeads}, f32);
    output = allocator.allocate({shape.partHeads, shape.cache.getValueDim()}, f32);
    bytes = allocator.getBytes();
  }

  int64_t bytes;
  Rotary rotary;
  Value query;   ///< f32 [heads][key_dim], rotated and scaled
  Value keys;    ///< f32 [chunk][key_dim]
  Value values;  ///< f32 [chunk][value_dim], or the keys where they hold the values
  Value scores;  ///< f32 [heads][chunk]: scores, then probabilities
  Value maxima;  ///< f32 [heads]: running maxima
  Value sums;    ///< f32 [heads]: sums of probabilities
  Value factors; ///< f32 [heads]: what sums under the old maximum are worth under the new one
  Value output;  ///< f32 [heads][value_dim]: sums of probability * value
};

class RowsKernel {
public:
  RowsKernel(CodeBuilder &code, moe::AttentionOp op, ValueRange operands, Value result,
             Value scratch)
      : code(code), op(op), shape(op), query(operands[0]), positions(operands[2]),
        tokenSequences(operands[3]), result(result), cache(shape.cache, operands[1], operands[4]),
        scratch(op, shape, ScratchAllocator(code, scratch)) {
    unsigned next = 5;
    if (op.getSinks())
      sinks = operands[next++];
    if (op.getIndices())
      indices = operands[next];
  }

  void build(Value workgroup) {
    token = code.divide(workgroup, shape.getParts());
    firstHead = code.mul(code.remainder(workgroup, shape.getParts()), shape.partHeads);
    kvHead = code.divide(firstHead, shape.group);
    sequence = code.loadIndex(tokenSequences, token);
    end = code.add(code.loadIndex(positions, token), 1);
    first = code.index(0);
    if (op.getWindow() > 0)
      first = code.maximum(code.sub(end, code.index(op.getWindow())), first);
    prepare();
    // Entries of the list, or positions from the first.
    Value entries = indices ? code.dim(indices, 1) : code.sub(end, first);
    code.loop(code.index(0), entries, chunk, [&](Value start) {
      Value limit = code.minimum(code.add(start, chunk), entries);
      Value rows = gather(start, limit);
      code.when(code.compare(arith::CmpIPredicate::ne, rows, code.index(0)), [&] {
        buildScores(rows);
        forEachHead([&](Value head) { buildProbabilities(head); });
        buildValues(rows);
      });
    });
    forEachHead([&](Value head) { finish(head); });
  }

private:
  void forEachHead(function_ref<void(Value)> body) { code.loop(0, shape.partHeads, 1, body); }

  void prepare() {
    scratch.rotary.layDownFrequencies(code);
    scratch.rotary.setPosition(code, code.loadInt(positions, token));
    double scale = op.getScale().convertToDouble();
    forEachHead([&](Value head) {
      Value ofAll = code.add(firstHead, head);
      code.panels(shape.cache.getKeyDim(), lanes, [&](Value i, int64_t width) {
        code.storeFloats(code.loadFloats(query, {token, ofAll, i}, width), scratch.query,
                         {head, i});
      });
      scratch.rotary.rotate(code, scratch.query, head);
      code.panels(shape.cache.getKeyDim(), lanes, [&](Value i, int64_t width) {
        Value scaled = code.mul(code.loadFloats(scratch.query, {head, i}, width),
                                code.floatSplat(scale, width));
        code.storeFloats(scaled, scratch.query, {head, i});
      });
      code.panels(shape.cache.getValueDim(), lanes, [&](Value i, int64_t width) {
        code.storeFloats(code.floatSplat(0, width), scratch.output, {head, i});
      });
      // A sink counts as a key without a value.
      Value maximum = code.float32(lowestScore), sum = code.float32(0);
      if (sinks) {
        Value sink = code.loadFloat(sinks, ofAll);
        Value counts = code.compare(arith::CmpFPredicate::UGE, sink, maximum);
        maximum = code.select(counts, sink, maximum);
        sum = code.select(counts, code.float32(1), sum);
      }
      code.storeFloat(maximum, scratch.maxima, head);
      code.storeFloat(sum, scratch.sums, head);
    });
  }

  /// Copies the rows of entries [start, limit) that the token sees; returns how many.
  Value gather(Value start, Value limit) {
    return code.loop(start, limit, 1, {code.index(0)},
                     [&](Value entry, ValueRange carried) -> SmallVector<Value> {
                       Value position = indices ? code.loadIndex(indices, {token, entry})
                                                : code.add(first, entry);
                       Value isSeen =
                           code.both(code.compare(arith::CmpIPredicate::sge, position, first),
                                     code.compare(arith::CmpIPredicate::slt, position, end));
                       CacheRows::Place place = cache.find(code, sequence, position);
                       isSeen = code.both(isSeen, place.known);
                       code.when(isSeen, [&] {
                         cache.copyKey(code, place, kvHead, scratch.keys, carried[0]);
                         if (!shape.cache.isShared())
                           cache.copyValue(code, place, kvHead, scratch.values, carried[0]);
                       });
                       return {code.select(isSeen, code.add(carried[0], 1), carried[0])};
                     })[0];
  }

  void buildScores(Value rows) {
    forEachHead([&](Value head) {
      code.loop(0, chunk, lanes, [&](Value i) {
        code.storeFloats(code.floatSplat(lowestScore, lanes), scratch.scores, {head, i});
      });
    });
    int64_t dim = shape.cache.getKeyDim(), whole = dim / lanes * lanes;
    code.loop(code.index(0), rows, 1, [&](Value row) {
      code.loop(0, shape.partHeads, shape.together, [&](Value head) {
        SmallVector<Value> sums(shape.together, code.floatSplat(0, lanes));
        if (whole > 0)
          sums = code.loop(code.index(0), code.index(whole), lanes, sums,
                           [&](Value i, ValueRange carried) {
                             return addProducts(row, head, i, lanes, carried);
                           });
        SmallVector<Value> products;
        for (Value sum : sums)
          products.push_back(code.sumLanes(sum));
        if (whole < dim) {
          SmallVector<Value> zeros(shape.together, code.floatSplat(0, dim - whole));
          for (auto [product, rest] : llvm::zip_equal(
                   products, addProducts(row, head, code.index(whole), dim - whole, zeros)))
            product = code.add(product, code.sumLanes(rest));
        }
        for (auto [i, product] : llvm::enumerate(products))
          code.storeFloat(cap(product), scratch.scores, {code.add(head, i), row});
      });
    });
  }

  SmallVector<Value> addProducts(Value row, Value head, Value i, int64_t width, ValueRange sums) {
    Value key = code.loadFloats(scratch.keys, {row, i}, width);
    SmallVector<Value> next;
    for (auto [other, sum] : llvm::enumerate(sums))
      next.push_back(
          code.fma(code.loadFloats(scratch.query, {code.add(head, other), i}, width), key, sum));
    return next;
  }

  Value cap(Value score) {
    double most = op.getSoftcap().convertToDouble();
    if (most == 0)
      return score;
    Value tanh = math::TanhOp::create(code, code.getLoc(), code.divide(score, code.float32(most)));
    return code.mul(tanh, code.float32(most));
  }

  /// From scores to probabilities under the new maximum; rows that are not there get zero.
  void buildProbabilities(Value head) {
    Value zero = code.index(0), old = code.loadFloat(scratch.maxima, head);
    Value maximum = code.loop(zero, code.index(chunk), lanes, {code.broadcast(old, lanes)},
                              [&](Value i, ValueRange carried) -> SmallVector<Value> {
                                Value scores = code.loadFloats(scratch.scores, {head, i}, lanes);
                                return {code.maximum(scores, carried[0])};
                              })[0];
    maximum = code.maximumLane(maximum);
    Value sums = code.loop(zero, code.index(chunk), lanes, {code.floatSplat(0, lanes)},
                           [&](Value i, ValueRange carried) -> SmallVector<Value> {
                             Value scores = code.loadFloats(scratch.scores, {head, i}, lanes);
                             Value all = code.exp(code.sub(scores, code.broadcast(maximum, lanes)));
                             code.storeFloats(all, scratch.scores, {head, i});
                             return {code.add(carried[0], all)};
                           })[0];
    Value factor = code.exp(code.sub(old, maximum));
    Value sum = code.fma(code.loadFloat(scratch.sums, head), factor, code.sumLanes(sums));
    code.storeFloat(maximum, scratch.maxima, head);
    code.storeFloat(factor, scratch.factors, head);
    code.storeFloat(sum, scratch.sums, head);
  }

  void buildValues(Value rows) {
    code.loop(0, shape.partHeads, shape.together, [&](Value head) {
      code.panels(shape.cache.getValueDim(), lanes, [&](Value i, int64_t width) {
        SmallVector<Value> sums;
        for (int64_t other = 0; other < shape.together; ++other) {
          Value place = code.add(head, other);
          Value factor = code.broadcast(code.loadFloat(scratch.factors, place), width);
          sums.push_back(code.mul(code.loadFloats(scratch.output, {place, i}, width), factor));
        }
        sums = code.loop(
            code.index(0), rows, 1, sums, [&](Value row, ValueRange carried) -> SmallVector<Value> {
              Value value = code.loadFloats(scratch.values, {row, i}, width);
              SmallVector<Value> next;
              for (auto [other, sum] : llvm::enumerate(carried)) {
                Value weight = code.loadFloat(scratch.scores, {code.add(head, other), row});
                next.push_back(code.fma(code.broadcast(weight, width), value, sum));
              }
              return next;
            });
        for (auto [other, sum] : llvm::enumerate(sums))
          code.storeFloats(sum, scratch.output, {code.add(head, other), i});
      });
    });
  }

  void finish(Value head) {
    // A token that sees nothing has sums of zero, and zeros are its result.
    Value sum = code.loadFloat(scratch.sums, head);
    Value sawNothing = code.compare(arith::CmpFPredicate::OEQ, sum, code.float32(0));
    Value factor = code.divide(code.float32(1), code.select(sawNothing, code.float32(1), sum));
    Value ofAll = code.add(firstHead, head);
    code.panels(shape.cache.getValueDim(), lanes, [&](Value i, int64_t width) {
      Value values = code.loadFloats(scratch.output, {head, i}, width);
      code.storeFloats(code.mul(values, code.broadcast(factor, width)), result, {token, ofAll, i});
    });
  }

  CodeBuilder &code;
  moe::AttentionOp op;
  RowsShape shape;
  Value query, positions, tokenSequences, sinks, indices, result;
  CacheRows cache;
  RowsScratch scratch;
  Value token, firstHead, kvHead, sequence, first, end;
};

class AttentionOverRowsStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.attention.rows"; }
  StringRef getOpName() const override { return moe::AttentionOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::AttentionOp>(op) && target.isCPU();
  }
  // Where the cache's layout allows it, the other strategy shares keys among tokens.
  int getBenefit(Operation *, const TargetDescription &) const override { return 0; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto attention = cast<moe::AttentionOp>(op);
    return countTiles(builder, op->getLoc(), attention.getQuery(), 1,
                      RowsShape(attention).getParts());
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &) const override {
    auto attention = cast<moe::AttentionOp>(op);
    RowsScratch scratch(attention, RowsShape(attention), ScratchAllocator());
    return builder.getIndexAttr(scratch.bytes);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &) const override {
    CodeBuilder code(op->getLoc(), builder);
    RowsKernel(code, cast<moe::AttentionOp>(op), operands, results[0], scratch).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getAttentionOverRowsStrategy() {
  static const AttentionOverRowsStrategy strategy;
  return strategy;
}
