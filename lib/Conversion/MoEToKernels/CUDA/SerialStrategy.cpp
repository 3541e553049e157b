//===- SerialStrategy.cpp - small ops whose CPU code one thread of a block runs ---------------===//
//
// Choosing experts within groups, sorting tokens by a great many experts, and linear attention of
// unusual sizes: what no strategy of its own does yet. The code is the CPU's, with scratch in the block's shared memory; blocks take
// workgroups.
//
//===------------------------------------------------------------------------------------------===//

#include "../Strategies.h"
#include "BlockCode.h"
#include "Strategies.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class SerialStrategy : public KernelStrategy {
public:
  SerialStrategy(StringRef name, const KernelStrategy &cpu) : name(name), cpu(cpu) {}

  StringRef getName() const override { return name; }
  StringRef getOpName() const override { return cpu.getOpName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    return target.isCUDA() && cpu.supports(op, getThread()) &&
           countSharedBytes(op) <= mostSharedBytes;
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }
  int64_t getThreads(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    return cpu.countWorkgroups(builder, op, getThread());
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &) const override {
    Location loc = op->getLoc();
    int64_t bytes = std::max<int64_t>(countSharedBytes(op), 1);
    auto kernel = cast<func::FuncOp>(builder.getInsertionBlock()->getParentOp());
    Value scratch = buildSharedMemory(builder, loc, kernel,
                                      MemRefType::get({bytes}, builder.getI8Type()));
    Value anySize = memref::CastOp::create(
        builder, loc, MemRefType::get({ShapedType::kDynamic}, builder.getI8Type()), scratch);
    cpu.build(builder, op, operands, results, anySize, workgroup, getThread());
  }

private:
  static constexpr int64_t mostSharedBytes = 48 * 1024;

  /// A thread as a CPU: vectors of four floats and no instructions of its own.
  static TargetDescription getThread() {
    TargetDescription thread;
    thread.name = "cpu:x86-64";
    thread.cpu = "x86-64";
    return thread;
  }

  int64_t countSharedBytes(Operation *op) const {
    OpBuilder builder(op);
    return *getConstantIntValue(cpu.countScratchBytes(builder, op, getThread()));
  }

  StringRef name;
  const KernelStrategy &cpu;
};

} // namespace

const KernelStrategy &mlir::moec::getCUDASerialRouteStrategy() {
  static const SerialStrategy strategy("cuda.route.serial", getRouteStrategy());
  return strategy;
}

const KernelStrategy &mlir::moec::getCUDASerialGroupTokensStrategy() {
  static const SerialStrategy strategy("cuda.group_tokens.serial", getGroupTokensStrategy());
  return strategy;
}

const KernelStrategy &mlir::moec::getCUDASerialCausalConvStrategy() {
  static const SerialStrategy strategy("cuda.causal_conv.serial", getCausalConvStrategy());
  return strategy;
}

const KernelStrategy &mlir::moec::getCUDASerialDeltaRuleStrategy() {
  static const SerialStrategy strategy("cuda.delta_rule.serial", getDeltaRuleStrategy());
  return strategy;
}
