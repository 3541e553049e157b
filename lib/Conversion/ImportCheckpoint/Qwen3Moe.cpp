//===- Qwen3Moe.cpp - Qwen3-MoE (30B-A3B, 235B-A22B) ------------------------------------------===//
//
// Attention: grouped heads, each normed before the rotation. Mixture: softmax over all experts, the
// best k, renormalised if the config says so. Some layers may be dense.
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
struct Qwen3MoeConfig : TransformerConfig, ExpertsConfig {
  int64_t inner, denseInner = 0;
  bool attentionBias, renormalize;
  std::vector<bool> isDense;
  std::vector<int64_t> windows;
  RotaryConfig rotary;

  explicit Qwen3MoeConfig(const JsonView &config)
      : TransformerConfig(config), ExpertsConfig(config, {"num_local_experts", "num_experts"}),
        inner(readSize(config["moe_intermediate_size"], mostFeatures)),
        attentionBias(config.optional("attention_bias").boolean().value_or(false)),
        renormalize(config.optional("norm_topk_prob").boolean().value_or(false)),
        isDense(readDenseLayers(config, layers)),
        windows(readWindows(config, layers, [](int64_t) { return false; })),
        rotary(readRotaryConfig(config, headDimension, /*defaultTheta=*/0)) {
    expectActivation(config, "silu");
    expectQuantization(config, {"compressed-tensors", "fp8"});
    checkCompressedTensors(config, config.optional("quantization_config"),
                           {{"hidden_size", hidden}, {"moe_intermediate_size", inner}});
    if (llvm::is_contained(isDense, true))
      denseInner = readSize(config["intermediate_size"], mostFeatures);
    // Files with such windows have not been seen; a wrong guess would go unnoticed.
    JsonView slides = config.optional("use_sliding_window");
    if (slides.boolean().value_or(false) && !config.optional("layer_types"))
      slides.complain("expected false, or layer_types that say which layers see a window");
  }
};
} // namespace

Value mlir::moec::buildQwen3Moe(Checkpoint &checkpoint, ModelBuilder &builder) {
  Qwen3MoeConfig config(checkpoint.config());
  if (checkpoint.hasJsonProblems())
    return {};
  GroupedAttention attention{config, config.rotary, config.attentionBias, /*hasHeadNorms=*/true};
  SwigluExperts experts{config.experts, config.hidden, config.inner,
                        "gate_proj",    "up_proj",     "down_proj"};
  return buildPreNormLayers(
      builder, config,
      [&](const std::string &name, Value x, int64_t layer) {
        return attention.build(builder, name + ".self_attn", x, config.windows[layer]);
      },
      [&](const std::string &name, Value x, int64_t layer) {
        if (config.isDense[layer])
          return builder.swigluLayer(name + ".mlp", x, config.denseInner);
        std::string router = name + ".mlp.gate";
        Value logits = builder.linear(router, x, config.experts, /*hasBias=*/false,
                                      Float32Type::get(builder.getContext()));
        ModelBuilder::RouteParameters parameters;
        parameters.topK = config.topK;
        parameters.renormalize = config.renormalize;
        return experts.build(builder, name + ".mlp.experts", x,
                             builder.route(router, logits, parameters));
      });
}
