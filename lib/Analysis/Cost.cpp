//===- Cost.cpp - how much an op computes and moves -------------------------------------------===//

#include "moec/Analysis/Cost.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

/// 2 T N K for a product with weights [..., N, K].
static AffineExpr countProductFlops(Operation *op, Type weight, AffineExpr rows) {
  if (!rows)
    return {};
  ArrayRef<int64_t> shape = moe::getLogicalShape(weight);
  int64_t n = shape[shape.size() - 2], k = shape.back();
  return rows * getAffineConstantExpr(2 * n * k, op->getContext());
}

/// Pairs of a token and an expert touch at most so many experts, and at most all.
static SmallVector<AffineExpr> countGroupedBytes(moe::GroupedLinearOp op, SymbolicDims &dims,
                                                 ArrayRef<Value> bindings,
                                                 ArrayRef<AffineExpr> bytes) {
  // A weight as it lies in a checkpoint is two buffers.
  SmallVector<Value> buffers = {op.getWeight()};
  if (auto blocks = op.getWeight().getDefiningOp<moe::AssembleBlocksOp>())
    buffers = {blocks.getCodes(), blocks.getScales()};
  AffineExpr rest = getAffineConstantExpr(0, op.getContext()), weight = rest;
  for (auto [binding, size] : llvm::zip(bindings, bytes)) {
    if (llvm::is_contained(buffers, binding))
      weight = weight + size;
    else
      rest = rest + size;
  }
  AffineExpr pairs = dims.getDim(op.getPairs(), 0);
  auto weightBytes = dyn_cast<AffineConstantExpr>(weight);
  if (!weightBytes || !pairs)
    return {};
  int64_t experts = moe::getLogicalShape(op.getWeight().getType()).front();
  return {rest + weight, rest + pairs * (weightBytes.getValue() / experts)};
}

/// What a launch reads and writes of the slots of its sequences; null without a state.
static AffineExpr countStateBytes(Operation *op, SymbolicDims &dims) {
  Value state, slots;
  if (auto conv = dyn_cast<moe::CausalConvOp>(op))
    std::tie(state, slots) = std::pair<Value, Value>(conv.getState(), conv.getStateSlots());
  else if (auto rule = dyn_cast<moe::DeltaRuleOp>(op))
    std::tie(state, slots) = std::pair<Value, Value>(rule.getState(), rule.getStateSlots());
  else if (auto compress = dyn_cast<moe::CompressOp>(op))
    std::tie(state, slots) = std::pair<Value, Value>(compress.getState(), compress.getStateSlots());
  AffineExpr sequences = slots ? dims.getDim(slots, 0) : AffineExpr();
  if (!sequences)
    return {};
  auto type = cast<moe::StateType>(state.getType());
  int64_t bytes = type.getElement().getIntOrFloatBitWidth() / 8;
  return sequences * (2 * bytes * ShapedType::getNumElements(type.getShape()));
}

/// Of a token: decay, prediction, update and result of each element of each head's matrix.
static AffineExpr countDeltaRuleFlops(moe::DeltaRuleOp op, SymbolicDims &dims) {
  AffineExpr tokens = dims.getDim(op.getQuery(), 0);
  if (!tokens)
    return {};
  return tokens * (7 * ShapedType::getNumElements(op.getState().getType().getShape()));
}

Cost mlir::moec::estimateCost(Operation *op, SymbolicDims &dims, ArrayRef<Value> bindings,
                              ArrayRef<AffineExpr> bytes) {
  Cost cost;
  if (auto linear = dyn_cast<moe::LinearOp>(op))
    cost.flops = countProductFlops(op, linear.getWeight().getType(), dims.getDim(linear.getResult(), 0));
  if (auto grouped = dyn_cast<moe::GroupedLinearOp>(op)) {
    cost.flops = countProductFlops(op, grouped.getWeight().getType(), dims.getDim(grouped.getPairs(), 0));
    cost.bytesMoved = countGroupedBytes(grouped, dims, bindings, bytes);
    return cost;
  }
  if (isa<moe::AttentionOp, moe::CompressedAttentionOp, moe::SelectEntriesOp>(op))
    return cost;
  if (auto rule = dyn_cast<moe::DeltaRuleOp>(op))
    cost.flops = countDeltaRuleFlops(rule, dims);

  // Of a table only the rows that the result gets.
  Value table;
  if (auto embedding = dyn_cast<moe::EmbeddingOp>(op))
    table = embedding.getTable();
  else if (auto gather = dyn_cast<moe::GatherRowsOp>(op))
    table = gather.getInput();
  AffineExpr sum = getAffineConstantExpr(0, op->getContext());
  for (auto [binding, size] : llvm::zip(bindings, bytes))
    sum = sum + (binding == table ? bytes.back() : size);
  if (AffineExpr state = countStateBytes(op, dims))
    sum = sum + state;
  cost.bytesMoved = {sum};
  return cost;
}
