//===- GptOss.cpp - gpt-oss (20b, 120b) -------------------------------------------------------===//
//
// Attention: grouped heads with biases, YaRN, one sink logit a head; layers of type
// "sliding_attention" see a window. Mixture: softmax over the best k router logits; clamped SwiGLU
// experts with gate and up rows interleaved, in MXFP4 or plain.
//
//===------------------------------------------------------------------------------------------===//

#include "GroupedAttention.h"
#include "ModelFamilies.h"
#include "PreNormLayers.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

// What the reference code has as constants or as defaults of its configuration.
static constexpr double defaultTheta = 150000, defaultAlpha = 1.702, defaultLimit = 7;
static constexpr double upOffset = 1; // the up branch is (up + 1)

namespace {
struct GptOssConfig : TransformerConfig, ExpertsConfig {
  int64_t inner;
  double alpha, limit;
  bool attentionBias;
  std::vector<int64_t> windows;
  RotaryConfig rotary;

  explicit GptOssConfig(const JsonView &config)
      : TransformerConfig(config), ExpertsConfig(config, {"num_local_experts", "num_experts"}),
        inner(readSize(config["intermediate_size"], mostFeatures)),
        alpha(config.optional("swiglu_alpha").number().value_or(defaultAlpha)),
        limit(readPositive(config.optional("swiglu_limit"), defaultLimit)),
        attentionBias(config.optional("attention_bias").boolean().value_or(true)),
        windows(readWindows(config, layers, [](int64_t layer) { return layer % 2 == 0; })),
        rotary(readRotaryConfig(config, headDimension, defaultTheta)) {
    // Which experts are quantised is read from the tensors.
    expectQuantization(config, {"mxfp4"});
  }
};

class Mixture {
public:
  Mixture(const GptOssConfig &config, ModelBuilder &builder) : config(config), builder(builder) {}
  Value build(const std::string &name, Value x);

private:
  Value expertWeight(const std::string &name, int64_t rows, int64_t columns);

  const GptOssConfig &config;
  ModelBuilder &builder;
};
} // namespace

Value Mixture::build(const std::string &name, Value x) {
  std::string router = name + ".router";
  Value scores = builder.linear(router, x, config.experts, /*hasBias=*/true,
                                Float32Type::get(builder.getContext()));
  // A softmax over the chosen logits is a softmax over all of them, renormalised.
  ModelBuilder::RouteParameters parameters;
  parameters.topK = config.topK;
  parameters.renormalize = true;
  ModelBuilder::Routing routing = builder.route(router, scores, parameters);

  std::string experts = name + ".experts";
  ModelBuilder::ExpertWeights weights;
  weights.gateUp = expertWeight(experts + ".gate_up_proj", 2 * config.inner, config.hidden);
  weights.gateUpBias =
      builder.weight(experts + ".gate_up_proj_bias", {config.experts, 2 * config.inner});
  weights.down = expertWeight(experts + ".down_proj", config.hidden, config.inner);
  weights.downBias = builder.weight(experts + ".down_proj_bias", {config.experts, config.hidden});
  auto activation =
      moe::ActivationAttr::get(builder.getContext(), moe::ActivationKind::swiglu, config.alpha,
                               upOffset, config.limit, /*interleaved=*/true);
  return builder.experts(experts, x, routing, weights, activation);
}

// One matrix [rows, columns] an expert. MXFP4 files store it like this; plain ones store its
// transpose.
Value Mixture::expertWeight(const std::string &name, int64_t rows, int64_t columns) {
  if (builder.hasTensor(name + "_blocks") || builder.hasTensor(name + "_scales"))
    return builder.mxfp4Weight(name, {config.experts, rows, columns});
  return builder.transposedWeight(name, config.experts, rows, columns);
}

// Codes of MXFP4 come in blocks: shapes of a wrong config would only repeat its problem.
static void checkBlocks(Checkpoint &checkpoint, ModelBuilder &builder, const GptOssConfig &config) {
  bool hasBlocks = false;
  for (const char *part : {"gate_up_proj", "down_proj"})
    hasBlocks |= builder.hasTensor(std::string("model.layers.0.mlp.experts.") + part + "_blocks");
  if (!hasBlocks)
    return;
  for (auto [key, size] :
       {std::pair("hidden_size", config.hidden), {"intermediate_size", config.inner}})
    if (size % moe::BlockTensorType::mxfp4BlockSize != 0)
      checkpoint.config()[key].complain(
          "expected a multiple of 32, the block size of the MXFP4 experts, found " +
          std::to_string(size));
}

Value mlir::moec::buildGptOss(Checkpoint &checkpoint, ModelBuilder &builder) {
  GptOssConfig config(checkpoint.config());
  if (!checkpoint.hasJsonProblems())
    checkBlocks(checkpoint, builder, config);
  if (checkpoint.hasJsonProblems())
    return {};
  GroupedAttention attention{config, config.rotary, config.attentionBias, /*hasHeadNorms=*/false,
                             /*hasSinks=*/true};
  return buildPreNormLayers(
      builder, config,
      [&](const std::string &name, Value x, int64_t layer) {
        return attention.build(builder, name + ".self_attn", x, config.windows[layer]);
      },
      [&](const std::string &name, Value x, int64_t) {
        return Mixture(config, builder).build(name + ".mlp", x);
      });
}
