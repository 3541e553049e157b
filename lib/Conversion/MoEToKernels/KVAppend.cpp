//===- KVAppend.cpp - strategy that writes keys and values into a paged cache -----------------===//
//
// A workgroup takes a few tokens with all their heads: sines and cosines are computed once a token.
// Keys go to memory transposed, one element a cache line apart; values, and keys of a shared cache, as
// they are.
//
//===------------------------------------------------------------------------------------------===//

#include "CodeBuilder.h"
#include "Rotary.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

constexpr int64_t tokensPerWorkgroup = 4;

class KVAppendKernel {
public:
  KVAppendKernel(CodeBuilder &code, moe::KVAppendOp op, ValueRange operands, Value scratch,
                 const TargetDescription &target)
      : code(code), cacheType(op.getCache().getType()), lanes(target.getVectorBytes() / 4),
        keys(operands[0]), allocator(code, scratch),
        rotary(op.getRotaryAttr(), lanes, allocator),
        rows(allocator.allocate({1, cacheType.getKeyDim()}, code.getF32Type())) {
    unsigned next = 1;
    if (op.getValue())
      values = operands[next++];
    cache = operands[next++];
    positions = operands[next++];
    tokenSequences = operands[next++];
    blockTable = operands[next];
  }

  void build(Value workgroup) {
    rotary.layDownFrequencies(code);
    Value first = code.mul(workgroup, tokensPerWorkgroup);
    Value end = code.minimum(code.add(first, tokensPerWorkgroup), code.dim(keys, 0));
    code.loop(first, end, 1, [&](Value token) { appendToken(token); });
  }

private:
  /// Tokens whose position has no block of the pool are left out: a wrong table must not write
  /// anywhere else.
  void appendToken(Value token) {
    Value position = code.loadIndex(positions, token);
    Value sequence = code.loadIndex(tokenSequences, token);
    Value capacity = code.mul(code.dim(blockTable, 1), cacheType.getBlock());
    Value known = code.both(code.isWithin(position, capacity),
                            code.isWithin(sequence, code.dim(blockTable, 0)));
    code.when(known, [&] {
      Value entry = code.divide(position, cacheType.getBlock());
      Value block = code.loadIndex(blockTable, {sequence, entry});
      code.when(code.isWithin(block, code.dim(cache, 0)), [&] {
        Value slot = code.remainder(position, cacheType.getBlock());
        if (rotary)
          rotary.setPosition(code, code.toInt32(position));
        code.loop(0, cacheType.getKvHeads(), 1, [&](Value head) {
          appendKey(token, head, block, slot);
          if (values)
            appendValue(token, head, block, slot);
        });
      });
    });
  }

  void appendKey(Value token, Value head, Value block, Value slot) {
    int64_t dim = cacheType.getKeyDim();
    Value source = keys;
    SmallVector<Value> prefix = {token, head};
    if (rotary) {
      Value zero = code.index(0);
      code.panels(dim, lanes, [&](Value i, int64_t width) {
        code.storeFloats(code.loadFloats(keys, {token, head, i}, width), rows, {zero, i});
      });
      rotary.rotate(code, rows, zero);
      source = rows;
      prefix = {zero};
    }
    if (cacheType.isShared()) {
      Value base = code.mul(code.add(code.mul(head, cacheType.getBlock()), slot), dim);
      code.panels(dim, lanes, [&](Value i, int64_t width) {
        SmallVector<Value> from(prefix);
        from.push_back(i);
        code.storeFloats(code.loadFloats(source, from, width), cache, {block, code.add(base, i)});
      });
      return;
    }
    Value column = code.add(code.mul(head, dim * cacheType.getBlock()), slot);
    code.loop(0, dim, 1, [&](Value i) {
      SmallVector<Value> from(prefix);
      from.push_back(i);
      Value to = code.add(column, code.mul(i, cacheType.getBlock()));
      code.storeFloat(code.loadFloat(source, from), cache, {block, to});
    });
  }

  void appendValue(Value token, Value head, Value block, Value slot) {
    int64_t dim = cacheType.getValueDim();
    int64_t keyElements = cacheType.getKvHeads() * cacheType.getKeyDim() * cacheType.getBlock();
    Value row = code.add(code.mul(head, cacheType.getBlock()), slot);
    Value base = code.add(code.mul(row, dim), keyElements);
    code.panels(dim, lanes, [&](Value i, int64_t width) {
      code.storeFloats(code.loadFloats(values, {token, head, i}, width), cache,
                       {block, code.add(base, i)});
    });
  }

  CodeBuilder &code;
  moe::CacheType cacheType;
  int64_t lanes;
  Value keys, values, cache, positions, tokenSequences, blockTable;
  ScratchAllocator allocator;
  Rotary rotary;
  Value rows;
};

class KVAppendStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.kv_append"; }
  StringRef getOpName() const override { return moe::KVAppendOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto append = dyn_cast<moe::KVAppendOp>(op);
    return append && target.isCPU();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return countTiles(builder, op->getLoc(), cast<moe::KVAppendOp>(op).getKey(), tokensPerWorkgroup,
                      1);
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &target) const override {
    auto append = cast<moe::KVAppendOp>(op);
    ScratchAllocator allocator;
    Rotary rotary(append.getRotaryAttr(), target.getVectorBytes() / 4, allocator);
    allocator.allocate({1, append.getCache().getType().getKeyDim()}, builder.getF32Type());
    return builder.getIndexAttr(allocator.getBytes());
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange, Value scratch,
             Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    KVAppendKernel(code, cast<moe::KVAppendOp>(op), operands, scratch, target).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getKVAppendStrategy() {
  static const KVAppendStrategy strategy;
  return strategy;
}
