//===- DeepseekV4.cpp - DeepSeek-V4 (Flash, Pro) ----------------------------------------------===//
//
// The residual has several streams: each branch takes a mixture of them and gives its result back
// to a mixture. Attention: one key for all heads, which is its value, too, of the last tokens and
// of entries that stand for windows of tokens: of all of them, or of those that an indexer chooses.
// What its results keep of the keys' rotation is undone. Mixture: experts by biased scores or, in
// the first layers, by the token's id, and a shared expert.
//
//===------------------------------------------------------------------------------------------===//

#include "ModelFamilies.h"
#include "SwigluExperts.h"
#include "TransformerConfig.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec;

using moert::inQuotes;
using moert::JsonView;

namespace {

/// A layer's attention: to the last tokens alone with `ratio` 0.
struct LayerKind {
  int64_t ratio = 0;
  bool isSparse = false; ///< overlapping windows, and an indexer
  bool hasHashRoute = false;
};

struct DeepseekV4Config : TransformerConfig, ExpertsConfig {
  int64_t inner, queryRank, outputGroups, outputRank, window;
  int64_t indexHeads = 1, indexDimension = 1, indexEntries = 1;
  double expertScale, limit;
  moe::ScoreFunction score = moe::ScoreFunction::sqrt_softplus;
  ModelBuilder::HyperParameters hyper;
  std::vector<LayerKind> kinds; // of each layer
  int64_t rotated;              // elements of a head, the last ones
  RotaryConfig plainRotary, entryRotary;

  explicit DeepseekV4Config(const JsonView &config);

private:
  void readKinds(const JsonView &config);
  void readLayerTypes(const JsonView &config, const JsonView &types);
  void readRatios(const JsonView &config);
  void readHashLayers(const JsonView &config);
  void readRotaries(const JsonView &config);
};

/// The publisher's names of tensors, and what transformers writes for their beginnings.
class TensorNames {
public:
  explicit TensorNames(const ModelBuilder &builder)
      : isPublished(!builder.hasTensor("model.embed_tokens.weight")) {}

  std::string get(const std::string &name) const {
    if (isPublished)
      return name;
    static constexpr std::pair<const char *, const char *> beginnings[] = {
        {"embed", "model.embed_tokens"},
        {"norm", "model.norm"},
        {"hc_head_", "model.hc_head.hc_"},
        {"layers.", "model.layers."}};
    for (auto [publisher, transformers] : beginnings)
      if (StringRef(name).starts_with(publisher))
        return transformers + name.substr(std::string(publisher).size());
    return name;
  }
  const char *getKeyNorm() const { return isPublished ? ".kv_norm" : ".norm"; }

private:
  bool isPublished;
};

class DeepseekV4 {
public:
  DeepseekV4(const DeepseekV4Config &config, ModelBuilder &builder)
      : config(config), builder(builder), names(builder),
        f32(Float32Type::get(builder.getContext())) {}

  Value build();

private:
  Value buildBranch(const std::string &layer, const char *branch, Value streams,
                    function_ref<Value(Value normed)> build);
  Value buildAttention(const std::string &name, Value x, const LayerKind &kind);
  Value chooseEntries(const std::string &name, Value x, Value compressedQuery,
                      const LayerKind &kind);
  Value buildOutput(const std::string &name, Value heads, const RotaryConfig &rotary);
  Value buildMixture(const std::string &name, Value x, const LayerKind &kind);
  ModelBuilder::CompressorParameters getCompressor(const LayerKind &kind, int64_t dimension);

  /// A rotation of the last elements of heads of `dimension` elements.
  RotaryConfig placeRotary(RotaryConfig rotary, int64_t dimension) const {
    rotary.offset = dimension - config.rotated;
    rotary.interleaved = true;
    return rotary;
  }

  const DeepseekV4Config &config;
  ModelBuilder &builder;
  TensorNames names;
  Type f32;
};

} // namespace

//===------------------------------------------------------------------------------------------===//
// Config
//===------------------------------------------------------------------------------------------===//

static void expectValue(const JsonView &view, int64_t expected) {
  if (auto value = view.integer(INT32_MIN, INT32_MAX); value && *value != expected)
    view.complain("expected " + std::to_string(expected) + ", found " + std::to_string(*value));
}

DeepseekV4Config::DeepseekV4Config(const JsonView &config)
    : TransformerConfig(config), ExpertsConfig(config, {"n_routed_experts"}),
      inner(readSize(config["moe_intermediate_size"], mostFeatures)),
      queryRank(readSize(config["q_lora_rank"], mostFeatures)),
      outputGroups(readSize(config["o_groups"], mostFeatures)),
      outputRank(readSize(config["o_lora_rank"], mostFeatures)),
      window(readSize(config["sliding_window"], INT32_MAX)),
      expertScale(readPositive(config["routed_scaling_factor"], 1)),
      limit(readPositive(config["swiglu_limit"], 1)) {
  hyper.streams = readSize(config["hc_mult"], 64);
  hyper.iterations = readSize(config["hc_sinkhorn_iters"], 1000);
  hyper.epsilon = readPositive(config["hc_eps"], 1);
  hyper.normEpsilon = epsilon;
  expectActivation(config, "silu");
  expectQuantization(config, {"fp8"});
  expectValue(config.optional("num_key_value_heads"), 1);
  expectValue(config.optional("n_shared_experts"), 1);
  JsonView function = config.optional("scoring_func");
  if (auto name = function.string(); name && *name == "sigmoid")
    score = moe::ScoreFunction::sigmoid;
  else if (name && *name != "sqrtsoftplus")
    function.complain("expected 'sqrtsoftplus' or 'sigmoid', found " + inQuotes(*name));
  for (const char *name : {"tie_word_embeddings", "attention_bias", "mlp_bias"})
    if (JsonView view = config.optional(name); view.boolean().value_or(false))
      view.complain("expected false, found true");
  if (JsonView view = config.optional("norm_topk_prob"); !view.boolean().value_or(true))
    view.complain("expected true, found false");
  if (heads % outputGroups != 0)
    config["o_groups"].complain("expected a divisor of num_attention_heads = " +
                                std::to_string(heads) + ", found " + std::to_string(outputGroups));
  readKinds(config);
  readHashLayers(config);
  readRotaries(config);
}

void DeepseekV4Config::readKinds(const JsonView &config) {
  kinds.resize(layers);
  if (JsonView types = config.optional("layer_types"))
    readLayerTypes(config, types);
  else
    readRatios(config);
  for (const LayerKind &kind : kinds)
    if (kind.isSparse) {
      indexHeads = readSize(config["index_n_heads"], mostFeatures);
      indexDimension = readSize(config["index_head_dim"], mostFeatures);
      indexEntries = readSize(config["index_topk"], INT32_MAX);
      return;
    }
}

/// The spelling of transformers: kinds by name, and ratios by kind.
void DeepseekV4Config::readLayerTypes(const JsonView &config, const JsonView &types) {
  static constexpr const char *sparse = "compressed_sparse_attention",
                              *heavy = "heavily_compressed_attention";
  std::vector<JsonView> entries = types.elements();
  if (types.raw()->is_array() && int64_t(entries.size()) != layers)
    types.complain("expected one entry for each of the " + std::to_string(layers) +
                   " layers, found " + std::to_string(entries.size()));
  for (size_t i = 0; i < std::min(entries.size(), kinds.size()); ++i) {
    std::string name = entries[i].string().value_or("sliding_attention");
    if (name == sparse || name == heavy)
      kinds[i] = {readSize(config["compress_rates"][name], INT32_MAX), name == sparse};
    else if (name != "sliding_attention")
      entries[i].complain("expected 'sliding_attention', " + inQuotes(sparse) + " or " +
                          inQuotes(heavy) + ", found " + inQuotes(name));
  }
}

/// The publisher's spelling: a ratio says which kind a layer is. Layers that predict further tokens
/// have theirs behind the others.
void DeepseekV4Config::readRatios(const JsonView &config) {
  JsonView ratios = config["compress_ratios"];
  std::vector<JsonView> entries = ratios.elements();
  if (ratios && ratios.raw()->is_array() && int64_t(entries.size()) < layers)
    ratios.complain("expected at least one entry for each of the " + std::to_string(layers) +
                    " layers, found " + std::to_string(entries.size()));
  for (size_t i = 0; i < std::min(entries.size(), kinds.size()); ++i) {
    int64_t ratio = entries[i].integer(0, INT32_MAX).value_or(0);
    if (ratio != 0 && ratio != 4 && ratio != 128)
      entries[i].complain("expected 0, 4 or 128, found " + std::to_string(ratio));
    kinds[i] = {ratio, ratio == 4};
  }
}

void DeepseekV4Config::readHashLayers(const JsonView &config) {
  JsonView types = config.optional("mlp_layer_types");
  if (!types) {
    int64_t count = config["num_hash_layers"].integer(0, mostLayers).value_or(0);
    for (int64_t layer = 0; layer < std::min(count, layers); ++layer)
      kinds[layer].hasHashRoute = true;
    return;
  }
  std::vector<JsonView> entries = types.elements();
  if (types.raw()->is_array() && int64_t(entries.size()) != layers)
    types.complain("expected one entry for each of the " + std::to_string(layers) +
                   " layers, found " + std::to_string(entries.size()));
  for (size_t i = 0; i < std::min(entries.size(), kinds.size()); ++i) {
    std::string name = entries[i].string().value_or("moe");
    kinds[i].hasHashRoute = name == "hash_moe";
    if (name != "hash_moe" && name != "moe")
      entries[i].complain("expected 'hash_moe' or 'moe', found " + inQuotes(name));
  }
}

/// Layers that see the last tokens alone rotate plainly, the others by the scheme of entries.
void DeepseekV4Config::readRotaries(const JsonView &config) {
  JsonView size = config.optional("qk_rope_head_dim");
  if (size) {
    rotated = size.integer(2, mostFeatures).value_or(2);
  } else {
    double share = readPositive(config["partial_rotary_factor"], 1);
    rotated = int64_t(double(headDimension) * std::min(share, 1.0));
  }
  if (rotated < 2 || rotated % 2 != 0 || rotated > headDimension)
    (size ? size : config)
        .complain("an even number of at least 2 of the " + std::to_string(headDimension) +
                  " dimensions of a head has to be rotated, not " + std::to_string(rotated));
  JsonView nested = config.optional("rope_parameters");
  JsonView plain = nested ? nested["main"] : config;
  JsonView entries = nested ? nested["compress"] : config.optional("rope_scaling");
  auto readTheta = [](const JsonView &view) {
    double theta = readPositive(view, 2);
    if (theta <= 1)
      view.complain("expected a number above 1, found " + view.raw()->dump());
    return std::max(theta, 1.0 + 1e-6);
  };
  plainRotary.frequencies = plainFrequencies(readTheta(plain["rope_theta"]), rotated);
  double theta = readTheta(nested ? entries["rope_theta"] : config["compress_rope_theta"]);
  entryRotary = readRotaryScheme(config, entries, theta, rotated);
  // Its magnitude does not count in this family.
  entryRotary.magnitude = 1;
}

//===------------------------------------------------------------------------------------------===//
// Model
//===------------------------------------------------------------------------------------------===//

Value DeepseekV4::build() {
  std::string embedding = names.get("embed");
  Value streams =
      builder.repeatHead(embedding, builder.embedding(embedding, config.vocabulary, config.hidden),
                         config.hyper.streams);
  for (int64_t layer : builder.getLayers(config.layers)) {
    std::string name = names.get("layers." + std::to_string(layer));
    const LayerKind &kind = config.kinds[layer];
    streams = buildBranch(name, "attn", streams,
                          [&](Value x) { return buildAttention(name + ".attn", x, kind); });
    streams = buildBranch(name, "ffn", streams,
                          [&](Value x) { return buildMixture(name + ".ffn", x, kind); });
  }
  // Rows are chosen before the streams are joined: the rest then works on wanted rows only.
  std::string head = names.get("hc_head_");
  Value rows = builder.selectLogitRows(builder.mergeHeads(head, streams));
  streams = builder.splitHeads(head, rows, config.hyper.streams);
  Value x = builder.hyperCollapse(
      head, streams, builder.hyperWeights(head, streams, config.hyper, /*isHead=*/true));
  x = builder.rmsNorm(names.get("norm"), x, config.epsilon);
  return builder.linear(names.get("head"), x, config.vocabulary, /*hasBias=*/false, f32);
}

/// What a branch takes from the streams, and gives back to them.
Value DeepseekV4::buildBranch(const std::string &layer, const char *branch, Value streams,
                              function_ref<Value(Value normed)> build) {
  std::string prefix = layer + ".hc_" + branch + "_", norm = layer + "." + branch + "_norm";
  Value weights = builder.hyperWeights(prefix, streams, config.hyper, /*isHead=*/false);
  Value x = builder.hyperCollapse(prefix, streams, weights);
  Value y = build(builder.rmsNorm(norm, x, config.epsilon));
  return builder.hyperExpand(prefix, y, streams, weights);
}

ModelBuilder::CompressorParameters DeepseekV4::getCompressor(const LayerKind &kind,
                                                             int64_t dimension) {
  return {kind.ratio, dimension, kind.isSparse, config.epsilon,
          placeRotary(config.entryRotary, dimension)};
}

Value DeepseekV4::buildAttention(const std::string &name, Value x, const LayerKind &kind) {
  RotaryConfig rotary =
      placeRotary(kind.ratio ? config.entryRotary : config.plainRotary, config.headDimension);
  Value compressedQuery = builder.rmsNorm(
      name + ".q_norm", builder.linear(name + ".wq_a", x, config.queryRank, /*hasBias=*/false),
      config.epsilon);
  Value query = builder.linear(name + ".wq_b", compressedQuery, config.heads * config.headDimension,
                               /*hasBias=*/false);
  query = builder.splitHeads(name, query, config.heads);
  query = builder.rope(name, builder.plainRmsNorm(name, query, config.epsilon), rotary);
  Value rows = builder.rmsNorm(
      name + names.getKeyNorm(),
      builder.linear(name + ".wkv", x, config.headDimension, /*hasBias=*/false), config.epsilon);
  rows = builder.rope(name, builder.splitHeads(name, rows, 1), rotary);

  ModelBuilder::AttentionParameters parameters;
  parameters.scale = 1 / std::sqrt(double(config.headDimension));
  parameters.window = config.window;
  parameters.sinks = builder.weight(name + ".attn_sink", {config.heads});
  Value heads;
  if (kind.ratio == 0) {
    Value cache = builder.cache(1, config.headDimension, config.headDimension);
    heads = builder.attention(name, query, rows, rows, cache, parameters);
  } else {
    Value entries =
        builder.compress(name + ".compressor", x, getCompressor(kind, config.headDimension));
    Value indices =
        kind.isSparse ? chooseEntries(name + ".indexer", x, compressedQuery, kind) : Value();
    heads =
        builder.compressedAttention(name, query, rows, entries, indices, kind.ratio, parameters);
  }
  return buildOutput(name, heads, rotary);
}

Value DeepseekV4::chooseEntries(const std::string &name, Value x, Value compressedQuery,
                                const LayerKind &kind) {
  ModelBuilder::CompressorParameters compressor = getCompressor(kind, config.indexDimension);
  Value entries = builder.compress(name + ".compressor", x, compressor);
  Value query = builder.linear(name + ".wq_b", compressedQuery,
                               config.indexHeads * config.indexDimension, /*hasBias=*/false);
  query = builder.rope(name, builder.splitHeads(name, query, config.indexHeads), compressor.rotary);
  // Factors that all scores have in common do not change the choice.
  Value weights =
      builder.linear(name + ".weights_proj", x, config.indexHeads, /*hasBias=*/false, f32);
  return builder.selectEntries(name, query, weights, entries, kind.ratio, config.indexEntries);
}

/// Values are keys, which are rotated: that of the token's own position is undone. Then groups of
/// heads go through a matrix each, and all of them through one.
Value DeepseekV4::buildOutput(const std::string &name, Value heads, const RotaryConfig &rotary) {
  RotaryConfig inverse = rotary;
  for (double &frequency : inverse.frequencies)
    frequency = -frequency;
  Value flat = builder.mergeHeads(name, builder.rope(name, heads, inverse));
  int64_t width = config.heads * config.headDimension / config.outputGroups;
  Value joined =
      builder.groupedLinear(name + ".wo_a", flat, config.outputGroups, width, config.outputRank);
  return builder.linear(name + ".wo_b", joined, config.hidden, /*hasBias=*/false);
}

Value DeepseekV4::buildMixture(const std::string &name, Value x, const LayerKind &kind) {
  std::string router = name + ".gate";
  Value logits = builder.linear(router, x, config.experts, /*hasBias=*/false, f32);
  ModelBuilder::RouteParameters parameters;
  parameters.score = config.score;
  parameters.topK = config.topK;
  parameters.renormalize = true;
  parameters.scale = config.expertScale;
  parameters.vocabulary = config.vocabulary;
  if (!kind.hasHashRoute)
    parameters.selectionBias = builder.weight(router + ".bias", {config.experts});
  // With a limit gates are at most that, and ups between it and its negative, before the product.
  auto activation = moe::ActivationAttr::get(builder.getContext(),
                                             config.limit > 0 ? moe::ActivationKind::swiglu
                                                              : moe::ActivationKind::silu,
                                             1.0, 0.0, config.limit, /*interleaved=*/false);
  SwigluExperts experts{config.experts, config.hidden, config.inner, "w1", "w3", "w2", activation};
  Value routed =
      experts.build(builder, name + ".experts", x,
                    kind.hasHashRoute ? builder.hashRoute(router + ".tid2eid", logits, parameters)
                                      : builder.route(router, logits, parameters));
  std::string shared = name + ".shared_experts";
  Value gate = builder.linear(shared + ".w1", x, config.inner, /*hasBias=*/false);
  Value up = builder.linear(shared + ".w3", x, config.inner, /*hasBias=*/false);
  Value hidden = builder.gate(shared, gate, up, activation);
  return builder.add(name, routed,
                     builder.linear(shared + ".w2", hidden, config.hidden, /*hasBias=*/false));
}

Value mlir::moec::buildDeepseekV4(Checkpoint &checkpoint, ModelBuilder &builder) {
  DeepseekV4Config config(checkpoint.config());
  if (checkpoint.hasJsonProblems())
    return {};
  // Layers that predict further tokens are not built.
  checkpoint.allowUnused("mtp.*");
  return DeepseekV4(config, builder).build();
}
