//===- GroupedLinear.cpp - the strategy for MXFP4 experts on Hopper ---------------------------===//

#include "../Strategies.h"
#include "ExpertsBlock.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class HopperGroupedLinearStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cuda.grouped_linear.wgmma"; }
  StringRef getOpName() const override { return moe::GroupedLinearOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto linear = dyn_cast<moe::GroupedLinearOp>(op);
    if (!linear || target.cpu != "sm_90a" ||
        !isa<moe::BlockTensorType>(linear.getWeight().getType()) ||
        !hasAlignedRows(linear.getInput()))
      return false;
    ArrayRef<int64_t> shape = moe::getLogicalShape(linear.getWeight().getType());
    // A thread has two neighbouring columns.
    return linear.getInput().getType().getElementType().isBF16() && shape[1] % 2 == 0 &&
           shape[0] <= mostExperts && !llvm::is_contained(shape, 0);
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 2; }
  moe::LayoutAttr getLayout(Operation *op, OpOperand &operand,
                            const TargetDescription &) const override {
    auto linear = cast<moe::GroupedLinearOp>(op);
    return operand.get() == linear.getWeight() ? CodeFragments::getLayout(linear)
                                               : moe::LayoutAttr();
  }
  int64_t getThreads(Operation *, const TargetDescription &) const override {
    return ExpertsBlock::threads;
  }
  int64_t getSharedBytes(Operation *, const TargetDescription &) const override {
    return ExpertsBlock::getSharedBytes();
  }

  /// No more blocks than there can be tiles.
  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &) const override {
    auto linear = cast<moe::GroupedLinearOp>(op);
    CodeBuilder code(op->getLoc(), builder);
    int64_t runs = CodeFragments(moe::getLogicalShape(linear.getWeight().getType())).getRowTiles();
    OpFoldResult pairs = tensor::getMixedSize(builder, op->getLoc(), linear.getPairs(), 0);
    if (auto count = getConstantIntValue(pairs))
      return builder.getIndexAttr(std::min<int64_t>(*count * runs, ExpertsBlock::blocks));
    return code.minimum(code.mul(cast<Value>(pairs), runs), code.index(ExpertsBlock::blocks));
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results, Value,
             Value workgroup, const TargetDescription &target) const override {
    HopperCode code(op->getLoc(), builder, ExpertsBlock::threads);
    ExpertsBlock(code, cast<moe::GroupedLinearOp>(op), operands, results[0], target)
        .build(workgroup);
  }

private:
  /// Two numbers for each, and one more, lie in shared memory beside the slots and their barriers.
  static constexpr int64_t mostExperts = 1024;
  static constexpr int64_t sharedOfBlock = 227 * 1024, barrierBytes = 256;
  static_assert(ExpertsBlock::getSharedBytes() + 2 * 4 * (mostExperts + 1) + barrierBytes <=
                sharedOfBlock);
};

} // namespace

const KernelStrategy &mlir::moec::getHopperGroupedLinearStrategy() {
  static const HopperGroupedLinearStrategy strategy;
  return strategy;
}
