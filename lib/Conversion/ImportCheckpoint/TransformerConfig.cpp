#include "TransformerConfig.h"

#include <algorithm>

namespace mlir::moec {

using moert::JsonView;

int64_t readSize(const JsonView &view, int64_t most) { return view.integer(1, most).value_or(1); }

double readPositive(const JsonView &view, double otherwise) {
  double value = view.number().value_or(otherwise);
  if (value > 0)
    return value;
  view.complain("expected a number above 0, found " + view.raw()->dump());
  return otherwise;
}

TransformerConfig::TransformerConfig(const JsonView &config) {
  vocabulary = readSize(config["vocab_size"], INT32_MAX);
  hidden = readSize(config["hidden_size"], mostFeatures);
  layers = readSize(config["num_hidden_layers"], mostLayers);
  heads = readSize(config["num_attention_heads"], mostFeatures);
  kvHeads = config.optional("num_key_value_heads").integer(1, mostFeatures).value_or(heads);
  headDimension = config.optional("head_dim").integer(1, mostFeatures).value_or(hidden / heads);
  if (heads % kvHeads != 0)
    config["num_key_value_heads"].complain(
        "expected a divisor of num_attention_heads = " + std::to_string(heads) + ", found " +
        std::to_string(kvHeads));
  JsonView epsilonView = config["rms_norm_eps"];
  epsilon = epsilonView.number().value_or(1);
  if (epsilon < 0)
    epsilonView.complain("expected a number of at least 0, found " + epsilonView.raw()->dump());
  tiedEmbeddings = config.optional("tie_word_embeddings").boolean().value_or(false);
}

ExpertsConfig::ExpertsConfig(const JsonView &config, std::initializer_list<const char *> names) {
  JsonView count = config.optional(*names.begin());
  for (const char *name : names)
    if (!count)
      count = config.optional(name);
  if (!count)
    count = config[*(names.end() - 1)]; // complains
  experts = readSize(count, mostExperts);
  topK = readSize(config["num_experts_per_tok"], mostExperts);
  if (topK > experts)
    config["num_experts_per_tok"].complain("expected at most the number of experts, " +
                                           std::to_string(experts) + ", found " +
                                           std::to_string(topK));
}

std::vector<int64_t> readWindows(const JsonView &config, int64_t layers,
                                 bool (*slides)(int64_t layer)) {
  std::vector<bool> isSliding;
  if (JsonView types = config.optional("layer_types")) {
    std::vector<JsonView> names = types.elements();
    if (types.raw()->is_array() && int64_t(names.size()) != layers)
      types.complain("expected one entry for each of the " + std::to_string(layers) +
                     " layers, found " + std::to_string(names.size()));
    for (const JsonView &view : names) {
      std::string name = view.string().value_or("full_attention");
      isSliding.push_back(name == "sliding_attention");
      if (name != "sliding_attention" && name != "full_attention")
        view.complain("expected 'sliding_attention' or 'full_attention', found " +
                      moert::inQuotes(name));
    }
  } else {
    for (int64_t layer = 0; layer < layers; ++layer)
      isSliding.push_back(slides(layer));
  }
  int64_t window = 0;
  if (std::find(isSliding.begin(), isSliding.end(), true) != isSliding.end())
    window = config["sliding_window"].integer(1, INT32_MAX).value_or(1);
  std::vector<int64_t> windows;
  for (bool slide : isSliding)
    windows.push_back(slide ? window : 0);
  return windows;
}

std::vector<bool> readDenseLayers(const JsonView &config, int64_t layers) {
  std::vector<bool> isDense;
  int64_t step = config.optional("decoder_sparse_step").integer(1, mostLayers).value_or(1);
  for (int64_t layer = 0; layer < layers; ++layer)
    isDense.push_back((layer + 1) % step != 0);
  for (const JsonView &view : config.optional("mlp_only_layers").elements())
    if (auto layer = view.integer(0, layers - 1))
      isDense[*layer] = true;
  return isDense;
}

void expectActivation(const JsonView &config, std::string_view expected) {
  JsonView view = config.optional("hidden_act");
  if (auto name = view.string(); name && *name != expected)
    view.complain("expected " + moert::inQuotes(expected) + ", found " + moert::inQuotes(*name));
}

void expectQuantization(const JsonView &config, std::initializer_list<std::string_view> known) {
  JsonView method = config.optional("quantization_config").optional("quant_method");
  auto name = method.string();
  if (!name || std::find(known.begin(), known.end(), *name) != known.end())
    return;
  std::string expected;
  for (std::string_view each : known)
    expected += moert::inQuotes(each) + " or ";
  method.complain("expected " + expected + "no quantization_config, found " +
                  moert::inQuotes(*name));
}

} // namespace mlir::moec
