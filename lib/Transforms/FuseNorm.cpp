//===- FuseNorm.cpp - RMS norms are applied while products read their input -------------------===//

#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Target/TargetDescription.h"
#include "moec/Transforms/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::moec {
#define GEN_PASS_DEF_FUSENORM
#include "moec/Transforms/Passes.h.inc"

namespace {

/// Whether every user of the norm can compute it itself.
bool canFuse(moe::RMSNormOp norm) {
  if (!norm.getWeight() || norm.getUnitOffset() || norm.getResult().use_empty())
    return false;
  bool hasReader = false;
  bool allCan = llvm::all_of(norm.getResult().getUses(), [&](OpOperand &use) {
    if (isa<tensor::DimOp>(use.getOwner()))
      return true; // the input has the same sizes
    hasReader = true;
    auto user = dyn_cast<moe::AcceptsNormOpInterface>(use.getOwner());
    return user && !user.hasNorm() && &user.getNormalizedOperand() == &use;
  });
  return hasReader && allCan;
}

struct FuseNormPass : impl::FuseNormBase<FuseNormPass> {
  void runOnOperation() override {
    // A GPU's products take their rows as they lie in memory.
    auto module = dyn_cast<ModuleOp>(getOperation());
    if (!module)
      module = getOperation()->getParentOfType<ModuleOp>();
    if (module && TargetDescription::isSet(module)) {
      FailureOr<TargetDescription> target = TargetDescription::get(module);
      if (failed(target))
        return signalPassFailure();
      if (target->isCUDA())
        return;
    }
    SmallVector<moe::RMSNormOp> norms;
    getOperation()->walk([&](moe::RMSNormOp norm) {
      if (canFuse(norm))
        norms.push_back(norm);
    });
    for (moe::RMSNormOp norm : norms) {
      for (OpOperand &use : llvm::make_early_inc_range(norm.getResult().getUses())) {
        use.set(norm.getInput());
        if (auto user = dyn_cast<moe::AcceptsNormOpInterface>(use.getOwner()))
          user.setNorm(norm.getWeight(), norm.getEpsilonAttr());
      }
      norm.erase();
      ++fused;
    }
  }
};

} // namespace
} // namespace mlir::moec
