//===- SelectStrategies.cpp - which kernel computes which op ----------------------------------===//

#include "moec/Conversion/KernelStrategy.h"
#include "moec/Transforms/Passes.h"

namespace mlir::moec {
#define GEN_PASS_DEF_SELECTSTRATEGIES
#include "moec/Transforms/Passes.h.inc"

namespace {

struct SelectStrategiesPass : impl::SelectStrategiesBase<SelectStrategiesPass> {
  void runOnOperation() override {
    FailureOr<TargetDescription> target = TargetDescription::get(getOperation());
    if (failed(target))
      return signalPassFailure();
    getOperation().walk([&](Operation *op) {
      if (op->hasAttr("strategy"))
        return; // chosen by hand
      if (const KernelStrategy *strategy = selectKernelStrategy(op, *target)) {
        op->setAttr("strategy", StringAttr::get(&getContext(), strategy->getName()));
        ++chosen;
      }
    });
  }
};

} // namespace
} // namespace mlir::moec
