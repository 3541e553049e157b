//===- Sample.cpp - strategy that chooses a token, one a workgroup ----------------------------===//

#include "SampleKernel.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// A thread alone.
class OneThread : public SampleTeam {
public:
  OneThread(CodeBuilder &code, Value scratch)
      : SampleTeam(1, 1), code(code), memory(code, scratch) {}

  Value squad() override { return code.index(0); }
  Value lane() override { return code.index(0); }
  Value member() override { return code.index(0); }
  Value allocate(int64_t size, Type element) override { return memory.allocate({size}, element); }
  void meet() override {}
  Value combineLanes(Value value, Combine) override { return value; }
  Value combineAll(Value value, Combine) override { return value; }

private:
  CodeBuilder &code;
  ScratchAllocator memory;
};

class SampleStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.sample"; }
  StringRef getOpName() const override { return moe::SampleOp::getOperationName(); }
  bool supports(Operation *op, const TargetDescription &target) const override {
    return isa<moe::SampleOp>(op) && target.isCPU();
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return countTiles(builder, op->getLoc(), cast<moe::SampleOp>(op).getRows(), 1, 1);
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *,
                                 const TargetDescription &) const override {
    ScratchAllocator memory;
    memory.allocate({SampleKernel::rangeParts}, builder.getI64Type());
    memory.allocate({SampleKernel::listSize}, builder.getI32Type());
    memory.allocate({1}, builder.getI32Type());
    return builder.getIndexAttr(memory.getBytes());
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &) const override {
    CodeBuilder code(op->getLoc(), builder);
    OneThread team(code, scratch);
    SampleKernel(code, team, cast<moe::SampleOp>(op), operands, results[0]).build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getSampleStrategy() {
  static const SampleStrategy strategy;
  return strategy;
}
