//===- Mixtral.cpp - Mixtral (8x7B, 8x22B) ----------------------------------------------------===//
//
// Attention: grouped heads. Mixture: softmax over all experts, the best k, renormalised.
//
//===------------------------------------------------------------------------------------------===//

#include "GroupedAttention.h"
#include "ModelFamilies.h"
#include "PreNormLayers.h"
#include "SwigluExperts.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

namespace {
struct MixtralConfig : TransformerConfig, ExpertsConfig {
  int64_t inner, window;
  RotaryConfig rotary;

  explicit MixtralConfig(const JsonView &config)
      : TransformerConfig(config), ExpertsConfig(config, {"num_local_experts"}),
        inner(readSize(config["intermediate_size"], mostFeatures)),
        window(config.optional("sliding_window").integer(1, INT32_MAX).value_or(0)),
        rotary(readRotaryConfig(config, headDimension, /*defaultTheta=*/0)) {
    expectActivation(config, "silu");
    expectQuantization(config, {"compressed-tensors", "fp8"});
    checkCompressedTensors(config, config.optional("quantization_config"),
                           {{"hidden_size", hidden}, {"intermediate_size", inner}});
  }
};
} // namespace

Value mlir::moec::buildMixtral(Checkpoint &checkpoint, ModelBuilder &builder) {
  MixtralConfig config(checkpoint.config());
  if (checkpoint.hasJsonProblems())
    return {};
  GroupedAttention attention{config, config.rotary};
  SwigluExperts experts{config.experts, config.hidden, config.inner, "w1", "w3", "w2"};
  return buildPreNormLayers(
      builder, config,
      [&](const std::string &name, Value x, int64_t) {
        return attention.build(builder, name + ".self_attn", x, config.window);
      },
      [&](const std::string &name, Value x, int64_t) {
        std::string router = name + ".block_sparse_moe.gate";
        Value logits = builder.linear(router, x, config.experts, /*hasBias=*/false,
                                      Float32Type::get(builder.getContext()));
        ModelBuilder::RouteParameters parameters;
        parameters.topK = config.topK;
        parameters.renormalize = true;
        return experts.build(builder, name + ".block_sparse_moe.experts", x,
                             builder.route(router, logits, parameters));
      });
}
