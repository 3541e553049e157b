#include "DeepseekMixture.h"

#include "SwigluExperts.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

DeepseekMixture::DeepseekMixture(const JsonView &config, const TransformerConfig &sizes)
    : router(config), layers(sizes.layers), hidden(sizes.hidden),
      inner(readSize(config["moe_intermediate_size"], mostFeatures)),
      denseInner(readSize(config["intermediate_size"], mostFeatures)),
      sharedInner(inner * readSize(config["n_shared_experts"], mostExperts)),
      predictionLayers(
          config.optional("num_nextn_predict_layers").integer(0, mostLayers).value_or(1)) {
  expectActivation(config, "silu");
  expectQuantization(config, {"compressed-tensors", "fp8"});
  checkCompressedTensors(config, config.optional("quantization_config"),
                         {{"hidden_size", hidden}, {"moe_intermediate_size", inner}});
  readDenseLayers(config);
}

void DeepseekMixture::readDenseLayers(const JsonView &config) {
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

void DeepseekMixture::skipPredictionLayers(Checkpoint &checkpoint) const {
  for (int64_t layer = layers; layer < layers + predictionLayers; ++layer)
    checkpoint.allowUnused("model.layers." + std::to_string(layer) + ".*");
}

Value DeepseekMixture::build(ModelBuilder &builder, const std::string &name, Value x,
                             int64_t layer) const {
  std::string place = name + ".mlp";
  if (isDense[layer])
    return builder.swigluLayer(place, x, denseInner);
  SwigluExperts experts{router.experts, hidden, inner, "gate_proj", "up_proj", "down_proj"};
  Value routed =
      experts.build(builder, place + ".experts", x, router.build(builder, place + ".gate", x));
  return builder.add(place, routed, builder.swigluLayer(place + ".shared_experts", x, sharedInner));
}
