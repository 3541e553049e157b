//===- Strategies.h - strategies for NVIDIA GPUs ----------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_STRATEGIES_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_STRATEGIES_H

#include "moec/Conversion/KernelStrategy.h"

namespace mlir::moec {

const KernelStrategy &getCUDALinearStrategy();
const KernelStrategy &getCUDAHeadLinearStrategy();
const KernelStrategy &getCUDAGroupedLinearStrategy();
const KernelStrategy &getHopperLinearStrategy();
const KernelStrategy &getHopperGroupedLinearStrategy();
const KernelStrategy &getRelayoutFragmentsStrategy();
const KernelStrategy &getCUDAAttentionStrategy();
const KernelStrategy &getCUDAKVAppendStrategy();
const KernelStrategy &getCUDASelectKeysStrategy();
const KernelStrategy &getCUDARouteStrategy();
const KernelStrategy &getCUDASerialRouteStrategy();
const KernelStrategy &getCUDAGroupTokensStrategy();
const KernelStrategy &getCUDASerialGroupTokensStrategy();
const KernelStrategy &getCUDASampleStrategy();
const KernelStrategy &getCUDACausalConvStrategy();
const KernelStrategy &getCUDASerialCausalConvStrategy();
const KernelStrategy &getCUDADeltaRuleStrategy();
const KernelStrategy &getCUDASerialDeltaRuleStrategy();
const KernelStrategy &getCUDACompressStrategy();
const KernelStrategy &getCUDACompressedAttentionStrategy();
const KernelStrategy &getCUDASelectEntriesStrategy();
const KernelStrategy &getCUDAHyperWeightsStrategy();

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_STRATEGIES_H
