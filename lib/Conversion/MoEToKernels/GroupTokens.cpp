//===- GroupTokens.cpp - strategy that sorts (token, choice) pairs by expert ------------------===//
//
// A stable counting sort in one workgroup: count, sum up, place. It is a matter of microseconds and
// its result is needed whole before the first product.
//
//===------------------------------------------------------------------------------------------===//

#include "CodeBuilder.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class GroupTokensKernel {
public:
  GroupTokensKernel(CodeBuilder &code, moe::GroupTokensOp op, ValueRange operands,
                    ValueRange results, Value scratch)
      : code(code), experts(op.getOffsets().getType().getDimSize(0) - 1),
        choices(op.getIndices().getType().getDimSize(1)), indices(operands[0]), offsets(results[0]),
        pairs(results[1]), allocator(code, scratch),
        cursors(allocator.allocate({experts}, code.getI32Type())) {}

  void build() {
    code.loop(0, experts, 1, [&](Value expert) { code.storeInt(code.int32(0), cursors, expert); });
    forEachPair([&](Value, Value expert) { takeNext(expert); });
    sumUp();
    forEachPair([&](Value pair, Value expert) {
      code.storeInt(code.toInt32(pair), pairs, code.toIndex(takeNext(expert)));
    });
  }

private:
  /// Visits the pairs that have a valid expert, in order.
  void forEachPair(function_ref<void(Value pair, Value expert)> body) {
    code.loop(code.index(0), code.dim(indices, 0), 1, [&](Value token) {
      code.loop(0, choices, 1, [&](Value choice) {
        Value expert = code.loadIndex(indices, {token, choice});
        code.when(code.isWithin(expert, code.index(experts)),
                  [&] { body(code.add(code.mul(token, choices), choice), expert); });
      });
    });
  }

  /// The value of an expert's cursor, which then moves on.
  Value takeNext(Value expert) {
    Value cursor = code.loadInt(cursors, expert);
    code.storeInt(code.add(cursor, code.int32(1)), cursors, expert);
    return cursor;
  }

  /// From counts to offsets; cursors begin at the offsets.
  void sumUp() {
    Value zero = code.int32(0);
    code.storeInt(zero, offsets, code.index(0));
    code.loop(code.index(0), code.index(experts), 1, {zero},
              [&](Value expert, ValueRange carried) -> SmallVector<Value> {
                Value next = code.add(carried[0], code.loadInt(cursors, expert));
                code.storeInt(carried[0], cursors, expert);
                code.storeInt(next, offsets, code.add(expert, 1));
                return {next};
              });
  }

  CodeBuilder &code;
  int64_t experts, choices;
  Value indices, offsets, pairs;
  ScratchAllocator allocator;
  Value cursors;
};

class GroupTokensStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.group_tokens"; }
  StringRef getOpName() const override { return moe::GroupTokensOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::GroupTokensOp>(op) && target.isCPU();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *,
                               const TargetDescription &) const override {
    return builder.getIndexAttr(1);
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &) const override {
    ScratchAllocator allocator;
    int64_t experts = cast<moe::GroupTokensOp>(op).getOffsets().getType().getDimSize(0) - 1;
    allocator.allocate({experts}, builder.getI32Type());
    return builder.getIndexAttr(allocator.getBytes());
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value, const TargetDescription &) const override {
    CodeBuilder code(op->getLoc(), builder);
    GroupTokensKernel(code, cast<moe::GroupTokensOp>(op), operands, results, scratch).build();
  }
};

} // namespace

const KernelStrategy &mlir::moec::getGroupTokensStrategy() {
  static const GroupTokensStrategy strategy;
  return strategy;
}
