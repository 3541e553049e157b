//===- KernelStrategies.cpp - the list of all strategies --------------------------------------===//

#include "CUDA/Strategies.h"
#include "ProductStrategies.h"
#include "Strategies.h"

#include "moec/Conversion/KernelStrategy.h"

using namespace mlir;
using namespace mlir::moec;

ArrayRef<const KernelStrategy *> mlir::moec::getKernelStrategies() {
  static const KernelStrategy *const strategies[] = {
      &getAttentionStrategy(),
      &getAttentionOverRowsStrategy(),
      &getSelectKeysStrategy(),
      &getKVAppendStrategy(),
      &getRouteStrategy(),
      &getGroupTokensStrategy(),
      &getCombineStrategy(),
      &getSampleStrategy(),
      &getCausalConvStrategy(),
      &getDeltaRuleStrategy(),
      &getCompressStrategy(),
      &getCompressedAttentionStrategy(),
      &getSelectEntriesStrategy(),
      &getHyperWeightsStrategy(),
      &getLinearVectorStrategy(),
      &getLinearAMXStrategy(),
      &getGroupedLinearVectorStrategy(),
      &getGroupedLinearAMXStrategy(),
      &getRelayoutBlocksStrategy(),
      &getRelayoutDenseStrategy(),
      &getCUDAAttentionStrategy(),
      &getCUDASelectKeysStrategy(),
      &getCUDAKVAppendStrategy(),
      &getCUDARouteStrategy(),
      &getCUDASerialRouteStrategy(),
      &getCUDAGroupTokensStrategy(),
      &getCUDASerialGroupTokensStrategy(),
      &getCUDASampleStrategy(),
      &getCUDACausalConvStrategy(),
      &getCUDASerialCausalConvStrategy(),
      &getCUDADeltaRuleStrategy(),
      &getCUDASerialDeltaRuleStrategy(),
      &getCUDACompressStrategy(),
      &getCUDACompressedAttentionStrategy(),
      &getCUDASelectEntriesStrategy(),
      &getCUDAHyperWeightsStrategy(),
      &getCUDALinearStrategy(),
      &getCUDAHeadLinearStrategy(),
      &getCUDAGroupedLinearStrategy(),
      &getHopperLinearStrategy(),
      &getHopperGroupedLinearStrategy(),
      &getRelayoutFragmentsStrategy(),
  };
  return strategies;
}

const KernelStrategy *mlir::moec::selectKernelStrategy(Operation *op,
                                                       const TargetDescription &target) {
  const KernelStrategy *best = nullptr;
  int bestBenefit = 0;
  for (const KernelStrategy *strategy : getKernelStrategies()) {
    if (strategy->getOpName() != op->getName().getStringRef() || !strategy->supports(op, target))
      continue;
    int benefit = strategy->getBenefit(op, target);
    if (!best || benefit > bestBenefit) {
      best = strategy;
      bestBenefit = benefit;
    }
  }
  return best;
}

const KernelStrategy *mlir::moec::findKernelStrategy(StringRef name) {
  for (const KernelStrategy *strategy : getKernelStrategies())
    if (strategy->getName() == name)
      return strategy;
  return nullptr;
}
