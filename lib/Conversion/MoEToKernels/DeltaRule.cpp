//===- DeltaRule.cpp - strategy for linear attention by the gated delta rule ------------------===//
//
// A workgroup takes one head of one sequence and walks along its tokens: the recurrence as it is
// defined, right for any mix of prompts and single tokens, and with the same bits wherever a prompt
// was cut. The state stays in the sequence's slot.
//
// Columns of the matrix do not depend on each other. So some tokens are prepared (normalised keys
// and queries, decay factors), and then each panel of columns, which fits in the first cache, goes
// through all of them, once a token: what an updated row predicts for the next token is added up on
// the way.
//
//===------------------------------------------------------------------------------------------===//

#include "CodeBuilder.h"
#include "SequencePart.h"
#include "Strategies.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// What a delta rule needs to know of an op.
struct DeltaRuleShape {
  explicit DeltaRuleShape(moe::DeltaRuleOp op)
      : heads(op.getValue().getType().getDimSize(1)),
        group(heads / op.getQuery().getType().getDimSize(1)),
        keyDim(op.getQuery().getType().getDimSize(2)),
        valueDim(op.getValue().getType().getDimSize(2)),
        // Scratch of at most 32 KiB, which a block of a GPU has as shared memory, too.
        chunk(std::clamp<int64_t>(32 * 1024 / (4 * 4 * keyDim), 1, 16)) {}

  int64_t heads, group; ///< value heads; value heads of a key head
  int64_t keyDim, valueDim;
  int64_t chunk; ///< tokens that are prepared at once
};

/// Rows of prepared tokens, f32 [chunk][key_dim].
struct DeltaRuleScratch {
  DeltaRuleScratch(MLIRContext *context, const DeltaRuleShape &shape, ScratchAllocator allocator) {
    Type f32 = Float32Type::get(context);
    for (Value *rows : {&query, &key, &decay, &decayedKey})
      *rows = allocator.allocate({shape.chunk, shape.keyDim}, f32);
    bytes = allocator.getBytes();
  }

  Value query;      ///< normalised and scaled
  Value key;        ///< normalised
  Value decay;      ///< exp(decay)
  Value decayedKey; ///< the product of the two
  int64_t bytes;
};

class DeltaRuleKernel {
public:
  DeltaRuleKernel(CodeBuilder &code, moe::DeltaRuleOp op, ValueRange operands, Value result,
                  Value scratchMemory, const TargetDescription &target)
      : code(code), op(op), shape(op), lanes(target.getVectorBytes() / 4), query(operands[0]),
        key(operands[1]), value(operands[2]), decay(operands[3]), beta(operands[4]),
        state(operands[5]), sequences{operands[5], operands[6], operands[7], operands[8]},
        result(result), scratch(op.getContext(), shape, ScratchAllocator(code, scratchMemory)) {}

  void build(Value workgroup) {
    head = code.remainder(workgroup, shape.heads);
    keyHead = code.divide(head, shape.group);
    Value sequence = code.divide(workgroup, shape.heads);
    withSequence(code, sequences, sequence, code.dim(query, 0), [&](const SequencePart &part) {
      slot = part.slot;
      code.when(part.begins, [&] { clearState(); });
      code.loop(part.first, part.end, shape.chunk, [&](Value first) {
        Value end = code.minimum(code.add(first, shape.chunk), part.end);
        code.loop(first, end, 1, [&](Value token) { prepare(token, code.sub(token, first)); });
        code.panels(shape.valueDim, 4 * lanes,
                    [&](Value column, int64_t width) { updateColumns(first, end, column, width); });
      });
    });
  }

private:
  void clearState() {
    code.loop(0, shape.keyDim, 1, [&](Value row) {
      code.panels(shape.valueDim, lanes, [&](Value column, int64_t width) {
        code.storeFloats(code.floatSplat(0, width), state, {slot, head, row, column});
      });
    });
  }

  /// 1 / sqrt(sum of squares + epsilon) of a token's row, or 1 where rows are taken as they are.
  Value findNormFactor(Value rows, Value token) {
    if (!op.getNormEpsilon())
      return code.float32(1);
    int64_t whole = shape.keyDim / lanes * lanes;
    Value sums = code.loop(code.index(0), code.index(whole), lanes, {code.floatSplat(0, lanes)},
                           [&](Value i, ValueRange carried) -> SmallVector<Value> {
                             Value x = code.loadFloats(rows, {token, keyHead, i}, lanes);
                             return {code.fma(x, x, carried[0])};
                           })
                     .front();
    Value sum = code.sumLanes(sums);
    if (int64_t rest = shape.keyDim - whole) {
      Value x = code.loadFloats(rows, {token, keyHead, code.index(whole)}, rest);
      sum = code.add(sum, code.sumLanes(code.mul(x, x)));
    }
    sum = code.add(sum, code.float32(op.getNormEpsilon()->convertToDouble()));
    return code.divide(code.float32(1), math::SqrtOp::create(code, code.getLoc(), sum));
  }

  void prepare(Value token, Value row) {
    Value keyFactor = findNormFactor(key, token);
    Value queryFactor =
        code.mul(findNormFactor(query, token), code.float32(op.getScale().convertToDouble()));
    code.panels(shape.keyDim, lanes, [&](Value i, int64_t width) {
      auto loadScaled = [&](Value rows, Value factor) {
        return code.mul(code.loadFloats(rows, {token, keyHead, i}, width),
                        code.broadcast(factor, width));
      };
      Value keys = loadScaled(key, keyFactor), factors = loadDecay(token, i, width);
      code.storeFloats(loadScaled(query, queryFactor), scratch.query, {row, i});
      code.storeFloats(keys, scratch.key, {row, i});
      code.storeFloats(factors, scratch.decay, {row, i});
      code.storeFloats(code.mul(keys, factors), scratch.decayedKey, {row, i});
    });
  }

  Value loadDecay(Value token, Value channel, int64_t width) {
    if (op.getDecay().getType().getRank() == 3)
      return code.exp(code.loadFloats(decay, {token, head, channel}, width));
    return code.exp(code.broadcast(code.loadFloat(decay, {token, head}), width));
  }

  Value loadState(Value row, Value column, int64_t width) {
    return code.loadFloats(state, {slot, head, row, column}, width);
  }
  /// An element of a prepared row, in every lane.
  Value loadPrepared(Value rows, Value token, Value i, int64_t width) {
    return code.broadcast(code.loadFloat(rows, {token, i}), width);
  }

  /// Takes columns of the matrix through the prepared tokens.
  void updateColumns(Value first, Value end, Value column, int64_t width) {
    Value last = code.sub(code.sub(end, first), code.index(1));
    // What the decayed state predicts for the first key.
    Value prediction = code.unrolledLoop(shape.keyDim, unrolled, {code.floatSplat(0, width)},
                                         [&](Value k, ValueRange sums) -> SmallVector<Value> {
                                           return {code.fma(loadPrepared(scratch.decayedKey,
                                                                         code.index(0), k, width),
                                                            loadState(k, column, width), sums[0])};
                                         })
                           .front();
    code.loop(first, end, 1, {prediction},
              [&](Value token, ValueRange carried) -> SmallVector<Value> {
                Value row = code.sub(token, first);
                Value next = code.minimum(code.add(row, 1), last); // of the last one unused
                return {update(token, row, next, column, width, carried[0])};
              });
  }

  /// Takes columns through one token and gives what they predict for the next one.
  Value update(Value token, Value row, Value next, Value column, int64_t width, Value prediction) {
    Value error = code.sub(code.loadFloats(value, {token, head, column}, width), prediction);
    Value correction = code.mul(code.broadcast(code.loadFloat(beta, {token, head}), width), error);
    Value zero = code.floatSplat(0, width);
    SmallVector<Value> sums = code.unrolledLoop(
        shape.keyDim, unrolled, {zero, zero}, [&](Value k, ValueRange sums) -> SmallVector<Value> {
          Value decayed =
              code.mul(loadState(k, column, width), loadPrepared(scratch.decay, row, k, width));
          Value updated = code.fma(loadPrepared(scratch.key, row, k, width), correction, decayed);
          code.storeFloats(updated, state, {slot, head, k, column});
          return {code.fma(loadPrepared(scratch.query, row, k, width), updated, sums[0]),
                  code.fma(loadPrepared(scratch.decayedKey, next, k, width), updated, sums[1])};
        });
    code.storeFloats(sums[0], result, {token, head, column});
    return sums[1];
  }

  static constexpr int64_t unrolled = 4;

  CodeBuilder &code;
  moe::DeltaRuleOp op;
  DeltaRuleShape shape;
  int64_t lanes;
  Value query, key, value, decay, beta, state;
  SequenceOperands sequences;
  Value result;
  DeltaRuleScratch scratch;
  Value head, keyHead, slot; ///< of the workgroup
};

class DeltaRuleStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.delta_rule"; }
  StringRef getOpName() const override { return moe::DeltaRuleOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::DeltaRuleOp>(op) && target.isCPU();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto rule = cast<moe::DeltaRuleOp>(op);
    return countTiles(builder, op->getLoc(), rule.getStateSlots(), 1, DeltaRuleShape(rule).heads);
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &) const override {
    DeltaRuleShape shape(cast<moe::DeltaRuleOp>(op));
    return builder.getIndexAttr(
        DeltaRuleScratch(op->getContext(), shape, ScratchAllocator()).bytes);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    DeltaRuleKernel(code, cast<moe::DeltaRuleOp>(op), operands, results[0], scratch, target)
        .build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getDeltaRuleStrategy() {
  static const DeltaRuleStrategy strategy;
  return strategy;
}
