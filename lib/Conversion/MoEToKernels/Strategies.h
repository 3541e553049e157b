//===- Strategies.h - the strategies of attention, routing and their neighbours ---------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_STRATEGIES_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_STRATEGIES_H

#include "moec/Conversion/KernelStrategy.h"

namespace mlir::moec {

const KernelStrategy &getAttentionStrategy();
const KernelStrategy &getAttentionOverRowsStrategy();
const KernelStrategy &getSelectKeysStrategy();
const KernelStrategy &getKVAppendStrategy();
const KernelStrategy &getRouteStrategy();
const KernelStrategy &getGroupTokensStrategy();
const KernelStrategy &getCombineStrategy();
const KernelStrategy &getSampleStrategy();
const KernelStrategy &getCausalConvStrategy();
const KernelStrategy &getDeltaRuleStrategy();
const KernelStrategy &getCompressStrategy();
const KernelStrategy &getCompressedAttentionStrategy();
const KernelStrategy &getSelectEntriesStrategy();
const KernelStrategy &getHyperWeightsStrategy();

/// ceil(rows of `tensor` / tile) * factor: the workgroups of a kernel that is cut along the tokens.
OpFoldResult countTiles(OpBuilder &builder, Location loc, Value tensor, int64_t tile,
                        int64_t factor);

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_STRATEGIES_H
