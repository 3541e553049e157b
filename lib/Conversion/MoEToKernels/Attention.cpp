//===- Attention.cpp - strategy for attention over a paged cache ------------------------------===//

#include "AttentionKernel.h"
#include "Strategies.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class AttentionStrategy : public KernelStrategy {
public:
  StringRef getName() const override { return "cpu.attention"; }
  StringRef getOpName() const override { return moe::AttentionOp::getOperationName(); }

  bool supports(Operation *op, const TargetDescription &target) const override {
    auto attention = dyn_cast<moe::AttentionOp>(op);
    if (!attention || !target.isCPU() || attention.getIndices())
      return false;
    moe::CacheType cache = attention.getCache().getType();
    return !cache.isShared() && AttentionShape::supportsBlock(cache.getBlock());
  }
  int getBenefit(Operation *, const TargetDescription &) const override { return 1; }

  OpFoldResult countWorkgroups(OpBuilder &builder, Operation *op,
                               const TargetDescription &target) const override {
    auto attention = cast<moe::AttentionOp>(op);
    AttentionShape shape(attention, target);
    int64_t perTile = shape.getWorkgroupsPerTile();
    OpFoldResult most = countTiles(builder, op->getLoc(), attention.getQuery(), 1, perTile);
    OpFoldResult full =
        countTiles(builder, op->getLoc(), attention.getQuery(), shape.tileTokens, perTile);
    int64_t extra = AttentionShape::extraTiles * perTile;
    std::optional<int64_t> constantMost = getConstantIntValue(most),
                           constantFull = getConstantIntValue(full);
    if (constantMost && constantFull)
      return builder.getIndexAttr(std::min(*constantMost, *constantFull + extra));
    CodeBuilder code(op->getLoc(), builder);
    return code.minimum(cast<Value>(most), code.add(cast<Value>(full), extra));
  }

  OpFoldResult countScratchBytes(OpBuilder &builder, Operation *op,
                                 const TargetDescription &target) const override {
    auto attention = cast<moe::AttentionOp>(op);
    AttentionScratch scratch(attention, AttentionShape(attention, target), ScratchAllocator());
    return builder.getIndexAttr(scratch.bytes);
  }

  void build(OpBuilder &builder, Operation *op, ValueRange operands, ValueRange results,
             Value scratch, Value workgroup, const TargetDescription &target) const override {
    CodeBuilder code(op->getLoc(), builder);
    AttentionKernel(code, cast<moe::AttentionOp>(op), operands, results[0], scratch, target)
        .build(workgroup);
  }
};

} // namespace

const KernelStrategy &mlir::moec::getAttentionStrategy() {
  static const AttentionStrategy strategy;
  return strategy;
}
