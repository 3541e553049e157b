//===- GptOss.cpp - gpt-oss (20b, 120b)
//---------------------------------------------------------===//
//
//   x = embedding(tokens)
//   per layer:  x = x + attention(rms_norm(x));  x = x + mixture(rms_norm(x))
//   logits = lm_head(rms_norm(x))
//
// Attention: grouped heads with biases, YaRN, one sink logit a head; layers of type
// "sliding_attention" see a window. Mixture: softmax over the best k router logits; clamped SwiGLU
// experts with gate and up rows interleaved, in MXFP4 or plain.
//
//===------------------------------------------------------------------------------------------===//

#include "ModelFamilies.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

// What the reference code has as constants or as defaults of its configuration.
static constexpr double defaultTheta = 150000, defaultAlpha = 1.702, defaultLimit = 7;
static constexpr double upOffset = 1; // the up branch is (up + 1)

// Bounds far above any model, so that products of two sizes fit in 64 bits.
static constexpr int64_t mostLayers = 4096, mostFeatures = 1 << 24, mostExperts = 1 << 16;

namespace {
struct GptOssConfig {
  int64_t vocabulary, hidden, inner, layers, heads, kvHeads, headDimension, experts, topK;
  double epsilon, alpha, limit;
  bool attentionBias, tiedEmbeddings;
  SmallVector<int64_t> windows; // of each layer; 0: sees everything
  RotaryConfig rotary;

  explicit GptOssConfig(const JsonView &config);

private:
  void readWindows(const JsonView &config);
  void checkQuantization(const JsonView &config);
};
} // namespace

GptOssConfig::GptOssConfig(const JsonView &config) {
  auto size = [&](const JsonView &view, int64_t most) { return view.integer(1, most).value_or(1); };
  vocabulary = size(config["vocab_size"], INT32_MAX);
  hidden = size(config["hidden_size"], mostFeatures);
  inner = size(config["intermediate_size"], mostFeatures);
  layers = size(config["num_hidden_layers"], mostLayers);
  heads = size(config["num_attention_heads"], mostFeatures);
  kvHeads = config.optional("num_key_value_heads").integer(1, mostFeatures).value_or(heads);
  headDimension = config.optional("head_dim").integer(1, mostFeatures).value_or(hidden / heads);
  if (heads % kvHeads != 0)
    config["num_key_value_heads"].complain(
        "expected a divisor of num_attention_heads = " + std::to_string(heads) + ", found " +
        std::to_string(kvHeads));
  JsonView expertCount = config.optional("num_local_experts");
  experts = size(expertCount ? expertCount : config["num_experts"], mostExperts);
  topK = size(config["num_experts_per_tok"], mostExperts);
  if (topK > experts)
    config["num_experts_per_tok"].complain("expected at most the number of experts, " +
                                           std::to_string(experts) + ", found " +
                                           std::to_string(topK));
  JsonView epsilonView = config["rms_norm_eps"];
  epsilon = epsilonView.number().value_or(1);
  if (epsilon < 0)
    epsilonView.complain("expected a number of at least 0, found " + epsilonView.raw()->dump());
  alpha = config.optional("swiglu_alpha").number().value_or(defaultAlpha);
  JsonView limitView = config.optional("swiglu_limit");
  limit = limitView.number().value_or(defaultLimit);
  if (limit <= 0)
    limitView.complain("expected a number above 0, found " + limitView.raw()->dump());
  attentionBias = config.optional("attention_bias").boolean().value_or(true);
  tiedEmbeddings = config.optional("tie_word_embeddings").boolean().value_or(false);
  readWindows(config);
  rotary = readRotaryConfig(config, headDimension, defaultTheta);
  checkQuantization(config);
}

void GptOssConfig::readWindows(const JsonView &config) {
  SmallVector<bool> slides;
  if (JsonView types = config.optional("layer_types")) {
    std::vector<JsonView> names = types.elements();
    if (types.raw()->is_array() && int64_t(names.size()) != layers)
      types.complain("expected one entry for each of the " + std::to_string(layers) +
                     " layers, found " + std::to_string(names.size()));
    for (const JsonView &view : names) {
      std::string name = view.string().value_or("full_attention");
      slides.push_back(name == "sliding_attention");
      if (name != "sliding_attention" && name != "full_attention")
        view.complain("expected 'sliding_attention' or 'full_attention', found " +
                      moert::inQuotes(name));
    }
  } else {
    for (int64_t layer = 0; layer < layers; ++layer)
      slides.push_back(layer % 2 == 0);
  }
  int64_t window = 0;
  if (llvm::is_contained(slides, true))
    window = config["sliding_window"].integer(1, INT32_MAX).value_or(1);
  for (bool slide : slides)
    windows.push_back(slide ? window : 0);
}

// Which experts are quantised is read from the tensors; here only what would be misread is refused.
void GptOssConfig::checkQuantization(const JsonView &config) {
  JsonView method = config.optional("quantization_config").optional("quant_method");
  if (auto name = method.string(); name && *name != "mxfp4")
    method.complain("expected 'mxfp4' or no quantization_config, found " + moert::inQuotes(*name));
}

namespace {
class GptOss {
public:
  GptOss(const GptOssConfig &config, ModelBuilder &builder) : config(config), builder(builder) {}
  Value logits();

private:
  Value attention(const std::string &name, Value x, int64_t layer);
  Value mixture(const std::string &name, Value x);
  Value expertWeight(const std::string &name, int64_t rows, int64_t columns);

  const GptOssConfig &config;
  ModelBuilder &builder;
};
} // namespace

Value GptOss::logits() {
  Value x = builder.embedding("model.embed_tokens", config.vocabulary, config.hidden);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    std::string name = "model.layers." + std::to_string(layer);
    Value normed = builder.rmsNorm(name + ".input_layernorm", x, config.epsilon);
    x = builder.add(name, x, attention(name + ".self_attn", normed, layer));
    normed = builder.rmsNorm(name + ".post_attention_layernorm", x, config.epsilon);
    x = builder.add(name, x, mixture(name + ".mlp", normed));
  }
  // Rows are chosen before the last norm: it and the head then work on wanted rows only.
  x = builder.rmsNorm("model.norm", builder.selectLogitRows(x), config.epsilon);
  return builder.linear(config.tiedEmbeddings ? "model.embed_tokens" : "lm_head", x,
                        config.vocabulary, /*hasBias=*/false,
                        Float32Type::get(builder.getContext()));
}

Value GptOss::attention(const std::string &name, Value x, int64_t layer) {
  auto project = [&](const char *part, int64_t heads) {
    std::string projection = name + "." + part + "_proj";
    Value flat = builder.linear(projection, x, heads * config.headDimension, config.attentionBias);
    return builder.splitHeads(projection, flat, heads);
  };
  Value query = builder.rope(name, project("q", config.heads), config.rotary);
  Value key = builder.rope(name, project("k", config.kvHeads), config.rotary);
  Value value = project("v", config.kvHeads);

  ModelBuilder::AttentionParameters parameters;
  parameters.scale = 1 / std::sqrt(double(config.headDimension));
  parameters.window = config.windows[layer];
  parameters.sinks = builder.weight(name + ".sinks", {config.heads});
  Value cache = builder.cache(config.kvHeads, config.headDimension, config.headDimension);
  Value heads = builder.attention(name, query, key, value, cache, parameters);
  return builder.linear(name + ".o_proj", builder.mergeHeads(name, heads), config.hidden,
                        config.attentionBias);
}

Value GptOss::mixture(const std::string &name, Value x) {
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
Value GptOss::expertWeight(const std::string &name, int64_t rows, int64_t columns) {
  if (builder.hasTensor(name + "_blocks") || builder.hasTensor(name + "_scales"))
    return builder.mxfp4Weight(name, {config.experts, rows, columns});
  return builder.transposedWeight(name, config.experts, rows, columns);
}

Value mlir::moec::buildGptOss(Checkpoint &checkpoint, ModelBuilder &builder) {
  GptOssConfig config(checkpoint.config());
  // Shapes of a wrong config would only repeat its problems.
  if (checkpoint.hasJsonProblems())
    return {};
  bool hasBlocks = false;
  for (const char *part : {"gate_up_proj", "down_proj"})
    hasBlocks |= builder.hasTensor(std::string("model.layers.0.mlp.experts.") + part + "_blocks");
  if (hasBlocks)
    for (auto [key, size] :
         {std::pair("hidden_size", config.hidden), {"intermediate_size", config.inner}})
      if (size % moe::BlockTensorType::mxfp4BlockSize != 0)
        checkpoint.config()[key].complain(
            "expected a multiple of 32, the block size of the MXFP4 experts, found " +
            std::to_string(size));
  if (checkpoint.hasJsonProblems())
    return {};
  return GptOss(config, builder).logits();
}
