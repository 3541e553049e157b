//===- Glm4Moe.cpp - GLM-4.5, 4.6 and 4.7 -----------------------------------------------------===//
//
// Attention: grouped heads, half of each rotated, normed before if the config says so; biases of all
// projections but the last. Dense layers, then DeepSeek's mixture of experts.
//
//===------------------------------------------------------------------------------------------===//

#include "DeepseekMixture.h"
#include "GroupedAttention.h"
#include "ModelFamilies.h"
#include "PreNormLayers.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

namespace {
struct Glm4MoeConfig : TransformerConfig {
  DeepseekMixture mixture;
  RotaryConfig rotary;
  bool attentionBias, hasHeadNorms;

  explicit Glm4MoeConfig(const JsonView &config)
      : TransformerConfig(config), mixture(config, *this),
        rotary(readRotaryConfig(config, headDimension, /*defaultTheta=*/0, /*defaultShare=*/0.5)),
        attentionBias(config.optional("attention_bias").boolean().value_or(false)),
        hasHeadNorms(config.optional("use_qk_norm").boolean().value_or(false)) {}
};
} // namespace

Value mlir::moec::buildGlm4Moe(Checkpoint &checkpoint, ModelBuilder &builder) {
  Glm4MoeConfig config(checkpoint.config());
  if (checkpoint.hasJsonProblems())
    return {};
  config.mixture.skipPredictionLayers(checkpoint);
  GroupedAttention attention{config, config.rotary, config.attentionBias, config.hasHeadNorms};
  attention.hasOutputBias = false;
  return buildPreNormLayers(
      builder, config,
      [&](const std::string &name, Value x, int64_t) {
        return attention.build(builder, name + ".self_attn", x, /*window=*/0);
      },
      [&](const std::string &name, Value x, int64_t layer) {
        return config.mixture.build(builder, name, x, layer);
      });
}
