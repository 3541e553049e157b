#include "DeepseekModel.h"

#include "SwigluExperts.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

/// YaRN makes scores larger, too: by the square of what DeepSeek's configs call mscale_all_dim.
static double readScoreMagnitude(const JsonView &config) {
  JsonView rope = config.optional("rope_parameters");
  if (!rope)
    rope = config.optional("rope_scaling");
  double scale = rope.optional("mscale_all_dim").number().value_or(0);
  JsonView factor = rope.optional("factor");
  if (scale == 0 || !factor)
    return 1;
  double magnitude = yarnMagnitude(factor.number().value_or(1), scale);
  return magnitude * magnitude;
}

DeepseekModel::DeepseekModel(const JsonView &config)
    : TransformerConfig(config), attention(config, *this), router(config),
      inner(readSize(config["moe_intermediate_size"], mostFeatures)),
      denseInner(readSize(config["intermediate_size"], mostFeatures)),
      sharedInner(inner * readSize(config["n_shared_experts"], mostExperts)),
      predictionLayers(
          config.optional("num_nextn_predict_layers").integer(0, mostLayers).value_or(1)) {
  attention.hasBias = config.optional("attention_bias").boolean().value_or(false);
  RotaryConfig rotary = readRotaryConfig(config, attention.rotated, /*defaultTheta=*/0);
  rotary.interleaved = config.optional("rope_interleave").boolean().value_or(true);
  attention.rotary = rotary;
  attention.scale *= readScoreMagnitude(config);
  expectActivation(config, "silu");
  expectQuantization(config, {"compressed-tensors", "fp8"});
  checkCompressedTensors(config, config.optional("quantization_config"),
                         {{"hidden_size", hidden}, {"moe_intermediate_size", inner}});
  readDenseLayers(config);
}

void DeepseekModel::readDenseLayers(const JsonView &config) {
  if (JsonView types = config.optional("mlp_layer_types")) {
    std::vector<JsonView> names = types.elements();
    if (types.raw()->is_array() && int64_t(names.size()) != layers)
      types.complain("expected one entry for each of the " + std::to_string(layers) +
                     " layers, found " + std::to_string(names.size()));
    for (const JsonView &view : names) {
      std::string name = view.string().value_or("sparse");
      isDense.push_back(name == "dense");
      if (name != "dense" && name != "sparse")
        view.complain("expected 'dense' or 'sparse', found " + moert::inQuotes(name));
    }
    return;
  }
  int64_t first = config["first_k_dense_replace"].integer(0, mostLayers).value_or(0);
  int64_t step = config.optional("moe_layer_freq").integer(1, mostLayers).value_or(1);
  for (int64_t layer = 0; layer < layers; ++layer)
    isDense.push_back(layer < first || layer % step != 0);
}

LightningIndexer DeepseekModel::readIndexer(const JsonView &config, bool interleaved) const {
  LightningIndexer indexer(config);
  if (attention.queryRank == 0)
    (void)config["q_lora_rank"].integer(
        1, mostFeatures); // complains: indexers' queries are made of it
  if (indexer.dimension < attention.rotated)
    config["index_head_dim"].complain(
        "expected at least qk_rope_head_dim = " + std::to_string(attention.rotated) + ", found " +
        std::to_string(indexer.dimension));
  indexer.rotary = attention.rotary;
  indexer.rotary->interleaved =
      config.optional("indexer_rope_interleave").boolean().value_or(interleaved);
  return indexer;
}

void DeepseekModel::skipPredictionLayers(Checkpoint &checkpoint) const {
  for (int64_t layer = layers; layer < layers + predictionLayers; ++layer)
    checkpoint.allowUnused("model.layers." + std::to_string(layer) + ".*");
}

Value DeepseekModel::buildFeedForward(ModelBuilder &builder, const std::string &name, Value x,
                                      int64_t layer) const {
  std::string place = name + ".mlp";
  if (isDense[layer])
    return builder.swigluLayer(place, x, denseInner);
  SwigluExperts experts{router.experts, hidden, inner, "gate_proj", "up_proj", "down_proj"};
  Value routed =
      experts.build(builder, place + ".experts", x, router.build(builder, place + ".gate", x));
  return builder.add(place, routed, builder.swigluLayer(place + ".shared_experts", x, sharedInner));
}
