//===- QwenHybrid.h - what Qwen3-Next and Qwen3.5-MoE have in common --------------------------===//
//
// Layers of linear attention and some of gated attention; softmax over all experts, the best k,
// renormalised, and one more expert for every token with a gate of its own. Norms multiply by
// 1 + weight, except the one within linear attention.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_QWENHYBRID_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_QWENHYBRID_H

#include "GatedDeltaNet.h"
#include "ModelBuilder.h"
#include "TransformerConfig.h"

namespace mlir::moec {

struct QwenHybridConfig : TransformerConfig, ExpertsConfig {
  int64_t inner, sharedInner, denseInner = 0;
  bool attentionBias, renormalize;
  std::vector<bool> isDense, isLinear; // of each layer
  RotaryConfig rotary;
  GatedDeltaNet deltaNet;

  /// From the whole config: `text_config`, where there is one, has all but the quantisation.
  QwenHybridConfig(const moert::JsonView &whole, bool isGroupedByKeyHead);

private:
  QwenHybridConfig(const moert::JsonView &config, const moert::JsonView &whole,
                   bool isGroupedByKeyHead);
};

Value buildQwenHybrid(ModelBuilder &builder, const QwenHybridConfig &config);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_QWENHYBRID_H
