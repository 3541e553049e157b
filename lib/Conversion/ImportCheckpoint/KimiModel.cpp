#include "KimiModel.h"

#include "AttentionResiduals.h"
#include "SwigluExperts.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

std::vector<int64_t> mlir::moec::countLayers(const JsonView &list, int64_t layers) {
  std::vector<int64_t> counts(layers, 0);
  for (const JsonView &view : list.elements())
    if (auto layer = view.integer(1, layers))
      ++counts[*layer - 1];
  return counts;
}

KimiConfig::KimiConfig(const JsonView &config, const JsonView &whole)
    : TransformerConfig(config), deltaAttention(config, *this), latentAttention(config, *this),
      experts(config, *this),
      blockLayers(config.optional("attn_res_block_size").integer(1, mostLayers).value_or(0)) {
  latentAttention.hasBias = config.optional("attention_bias").boolean().value_or(false);
  latentAttention.hasOutputGate = config.optional("mla_use_output_gate").boolean().value_or(false);
  JsonView withoutPositions = config.optional("mla_use_nope");
  if (!withoutPositions.boolean().value_or(true))
    withoutPositions.complain("expected true: rotated keys are not supported in this family");
  readAttentionLayers(config);
  readDenseLayers(config);
  SmallVector<JsonView> views = {config};
  if (whole.raw() != config.raw())
    views.push_back(whole);
  for (const JsonView &view : views) {
    expectQuantization(view, {"compressed-tensors"});
    checkCompressedTensors(config, view.optional("quantization_config"),
                           {{experts.latent > 0 ? "routed_expert_hidden_size" : "hidden_size",
                             experts.latent > 0 ? experts.latent : hidden},
                            {"moe_intermediate_size", experts.inner}});
  }
}

/// `layer_types` of transformers, or the publisher's two lists, which count layers from 1.
void KimiConfig::readAttentionLayers(const JsonView &config) {
  hasLatentAttention.assign(layers, false);
  if (JsonView types = config.optional("layer_types")) {
    std::vector<JsonView> names = types.elements();
    if (types.raw()->is_array() && int64_t(names.size()) != layers)
      return types.complain("expected one entry for each of the " + std::to_string(layers) +
                            " layers, found " + std::to_string(names.size()));
    for (auto [layer, view] : llvm::enumerate(names)) {
      std::string name = view.string().value_or("linear_attention");
      hasLatentAttention[layer] = name == "full_attention";
      if (name != "full_attention" && name != "linear_attention")
        view.complain("expected 'full_attention' or 'linear_attention', found " +
                      moert::inQuotes(name));
    }
    return;
  }
  JsonView lists = config["linear_attn_config"];
  std::vector<int64_t> full = countLayers(lists["full_attn_layers"], layers);
  std::vector<int64_t> linear = countLayers(lists["kda_layers"], layers);
  std::string wrong;
  for (int64_t layer = 0; layer < layers; ++layer) {
    hasLatentAttention[layer] = full[layer] > 0;
    if (int64_t count = full[layer] + linear[layer]; count != 1)
      wrong += (wrong.empty() ? "layer " : ", layer ") + std::to_string(layer + 1) + " " +
               std::to_string(count) + " times";
  }
  if (!wrong.empty())
    lists.complain("expected each layer, counted from 1, once in full_attn_layers or in "
                   "kda_layers, found " +
                   wrong);
}

/// `mlp_layer_types` of transformers, or the publisher's numbers.
void KimiConfig::readDenseLayers(const JsonView &config) {
  isDense.assign(layers, false);
  if (JsonView types = config.optional("mlp_layer_types")) {
    std::vector<JsonView> names = types.elements();
    if (types.raw()->is_array() && int64_t(names.size()) != layers)
      return types.complain("expected one entry for each of the " + std::to_string(layers) +
                            " layers, found " + std::to_string(names.size()));
    for (auto [layer, view] : llvm::enumerate(names)) {
      std::string name = view.string().value_or("sparse");
      isDense[layer] = name == "dense";
      if (name != "dense" && name != "sparse")
        view.complain("expected 'dense' or 'sparse', found " + moert::inQuotes(name));
    }
  } else {
    int64_t first = config["first_k_dense_replace"].integer(0, mostLayers).value_or(0);
    int64_t step = config.optional("moe_layer_freq").integer(1, mostLayers).value_or(1);
    for (int64_t layer = 0; layer < layers; ++layer)
      isDense[layer] = layer < first || layer % step != 0;
  }
  if (llvm::is_contained(isDense, true))
    denseInner = readSize(config["intermediate_size"], mostFeatures);
}

Value mlir::moec::buildKimiModel(ModelBuilder &builder, const KimiConfig &config) {
  auto attention = [&](const std::string &layerName, Value x, int64_t layer) {
    std::string name = layerName + ".self_attn";
    if (!config.hasLatentAttention[layer])
      return config.deltaAttention.build(builder, name, x);
    if (!config.indexer)
      return config.latentAttention.build(builder, name, x);
    return config.latentAttention.build(builder, name, x, [&](Value compressedQuery) {
      return config.indexer->build(builder, name + ".indexer", x, compressedQuery);
    });
  };
  auto mixture = [&](const std::string &name, Value x, int64_t layer) {
    if (!config.isDense[layer])
      return config.experts.build(builder, name + ".block_sparse_moe", x);
    // Files that transformers 5 wrote have the name of the mixtures here, too.
    bool isRenamed = builder.hasTensor(name + ".block_sparse_moe.gate_proj.weight");
    return builder.gatedLayer(name + (isRenamed ? ".block_sparse_moe" : ".mlp"), x,
                              config.denseInner,
                              config.experts.activation.get(builder.getContext()));
  };
  if (config.blockLayers > 0)
    return buildAttentionResidualLayers(builder, config, config.blockLayers, attention, mixture);
  return buildPreNormLayers(builder, config, attention, mixture);
}
