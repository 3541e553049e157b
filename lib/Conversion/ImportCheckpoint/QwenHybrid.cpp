#include "QwenHybrid.h"

#include "GroupedAttention.h"
#include "PreNormLayers.h"
#include "SwigluExperts.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

/// `layer_types` or, without such a list, all but every `full_attention_interval`-th layer.
static std::vector<bool> readLinearLayers(const JsonView &config, int64_t layers) {
  std::vector<bool> isLinear;
  JsonView types = config.optional("layer_types");
  if (!types) {
    int64_t interval = readSize(config["full_attention_interval"], mostLayers);
    for (int64_t layer = 0; layer < layers; ++layer)
      isLinear.push_back((layer + 1) % interval != 0);
    return isLinear;
  }
  for (const JsonView &view : types.elements()) {
    std::string name = view.string().value_or("full_attention");
    isLinear.push_back(name == "linear_attention");
    if (name != "linear_attention" && name != "full_attention")
      view.complain("expected 'linear_attention' or 'full_attention', found " +
                    moert::inQuotes(name));
  }
  if (types.raw()->is_array() && int64_t(isLinear.size()) != layers)
    types.complain("expected one entry for each of the " + std::to_string(layers) +
                   " layers, found " + std::to_string(isLinear.size()));
  isLinear.resize(layers);
  return isLinear;
}

/// How much of a head is rotated has to be said: a quarter is as usual as all of it.
static RotaryConfig readPartialRotary(const JsonView &config, int64_t headDimension) {
  if (!config.optional("rope_parameters").optional("partial_rotary_factor"))
    config["partial_rotary_factor"]; // complains
  return readRotaryConfig(config, headDimension, /*defaultTheta=*/0);
}

static JsonView getTextConfig(const JsonView &whole) {
  JsonView text = whole.optional("text_config");
  return text ? text : whole;
}

QwenHybridConfig::QwenHybridConfig(const JsonView &whole, bool isGroupedByKeyHead)
    : QwenHybridConfig(getTextConfig(whole), whole, isGroupedByKeyHead) {}

QwenHybridConfig::QwenHybridConfig(const JsonView &config, const JsonView &whole,
                                   bool isGroupedByKeyHead)
    : TransformerConfig(config), ExpertsConfig(config, {"num_local_experts", "num_experts"}),
      inner(readSize(config["moe_intermediate_size"], mostFeatures)),
      sharedInner(readSize(config["shared_expert_intermediate_size"], mostFeatures)),
      attentionBias(config.optional("attention_bias").boolean().value_or(false)),
      renormalize(config.optional("norm_topk_prob").boolean().value_or(true)),
      isDense(readDenseLayers(config, layers)), isLinear(readLinearLayers(config, layers)),
      rotary(readPartialRotary(config, headDimension)),
      deltaNet(config, *this, isGroupedByKeyHead) {
  hasZeroCentredNorms = true;
  expectActivation(config, "silu");
  expectQuantization(whole, {"compressed-tensors", "fp8"});
  checkCompressedTensors(config, whole.optional("quantization_config"),
                         {{"hidden_size", hidden}, {"moe_intermediate_size", inner}});
  if (llvm::is_contained(isDense, true))
    denseInner = readSize(config["intermediate_size"], mostFeatures);
}

static Value buildMixture(ModelBuilder &builder, const QwenHybridConfig &config,
                          const std::string &name, Value x) {
  Type f32 = Float32Type::get(builder.getContext());
  std::string router = name + ".gate", shared = name + ".shared_expert";
  ModelBuilder::RouteParameters parameters;
  parameters.topK = config.topK;
  parameters.renormalize = config.renormalize;
  Value logits = builder.linear(router, x, config.experts, /*hasBias=*/false, f32);
  SwigluExperts experts{config.experts, config.hidden, config.inner,
                        "gate_proj",    "up_proj",     "down_proj"};
  Value routed =
      experts.build(builder, name + ".experts", x, builder.route(router, logits, parameters));
  Value gate = builder.linear(shared + "_gate", x, 1, /*hasBias=*/false, f32);
  Value common = builder.swigluLayer(shared, x, config.sharedInner);
  return builder.add(name, routed, builder.sigmoidGate(shared + "_gate", common, gate));
}

Value mlir::moec::buildQwenHybrid(ModelBuilder &builder, const QwenHybridConfig &config) {
  GroupedAttention attention{config, config.rotary, config.attentionBias, /*hasHeadNorms=*/true};
  attention.hasGate = true;
  return buildPreNormLayers(
      builder, config,
      [&](const std::string &name, Value x, int64_t layer) {
        return config.isLinear[layer]
                   ? config.deltaNet.build(builder, name + ".linear_attn", x)
                   : attention.build(builder, name + ".self_attn", x, /*window=*/0);
      },
      [&](const std::string &name, Value x, int64_t layer) {
        return config.isDense[layer] ? builder.swigluLayer(name + ".mlp", x, config.denseInner)
                                     : buildMixture(builder, config, name + ".mlp", x);
      });
}
