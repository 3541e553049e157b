#include "moec/Analysis/LoadTime.h"

#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::moec;

LoadTime::LoadTime(func::FuncOp entry) {
  for (Operation &op : entry.getBody().front()) {
    if (!isMemoryEffectFree(&op) || op.hasTrait<OpTrait::IsTerminator>())
      continue;
    bool dependsOnInput = false;
    op.walk([&](Operation *nested) {
      for (Value operand : nested->getOperands()) {
        if (operand.getParentRegion() != &entry.getBody())
          continue; // made inside `op`
        Operation *producer = operand.getDefiningOp();
        dependsOnInput |= !producer || !ops.contains(producer);
      }
    });
    if (!dependsOnInput)
      ops.insert(&op);
  }
}

/// Sees through ops that only rename what they read.
static bool isWeightItself(Operation *op) {
  while (op && isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return op && isa<moe::WeightOp, moe::GlobalLoadOp, arith::ConstantOp>(op);
}

bool LoadTime::isWorthHoisting(Operation *op) const {
  if (isa<moe::WeightOp, moe::GlobalLoadOp, moe::AssembleBlocksOp, tensor::EmptyOp, linalg::FillOp,
          tensor::SplatOp, tensor::DimOp>(op) ||
      op->hasTrait<OpTrait::ConstantLike>() || isWeightItself(op))
    return false;
  return llvm::any_of(op->getResultTypes(),
                      [](Type type) { return isa<RankedTensorType, moe::BlockTensorType>(type); });
}
