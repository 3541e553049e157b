//===- GlmMoeDsa.cpp - GLM-5 ------------------------------------------------------------------===//
//
// DeepSeek-V3.2 without YaRN, whose indexers' rotation pairs neighbours, too. Layers without an
// indexer of their own see what the last layer before them with one has chosen.
//
//===------------------------------------------------------------------------------------------===//

#include "DeepseekModel.h"
#include "LightningIndexer.h"
#include "ModelFamilies.h"
#include "PreNormLayers.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

/// Which layers have an indexer, by one of three spellings: a list of names, a string of letters,
/// or every `index_topk_freq`-th layer, counted from the one before `index_skip_topk_offset`.
static std::vector<bool> readIndexerLayers(const JsonView &config, int64_t layers) {
  std::vector<bool> result;
  auto expectCount = [&](const JsonView &view, size_t count) {
    if (int64_t(count) != layers)
      view.complain("expected one entry for each of the " + std::to_string(layers) +
                    " layers, found " + std::to_string(count));
    result.resize(layers, true);
  };
  JsonView types = config.optional("indexer_types"),
           pattern = config.optional("index_topk_pattern");
  if (!types && pattern && pattern.raw()->is_array())
    types = pattern;
  if (types) {
    for (const JsonView &view : types.elements()) {
      std::string name = view.string().value_or("full");
      result.push_back(name == "full");
      if (name != "full" && name != "shared")
        view.complain("expected 'full' or 'shared', found " + moert::inQuotes(name));
    }
    expectCount(types, result.size());
  } else if (pattern) {
    std::string letters = pattern.string().value_or(std::string(layers, 'F'));
    for (char letter : letters)
      result.push_back(letter == 'F');
    if (letters.find_first_not_of("FS") != std::string::npos)
      pattern.complain("expected letters 'F' (full) and 'S' (shared), found " +
                       moert::inQuotes(letters));
    expectCount(pattern, result.size());
  } else {
    int64_t step = config.optional("index_topk_freq").integer(1, mostLayers).value_or(1);
    int64_t offset = config.optional("index_skip_topk_offset").integer(0, mostLayers).value_or(2);
    for (int64_t layer = 0; layer < layers; ++layer)
      result.push_back(std::max<int64_t>(layer - offset + 1, 0) % step == 0);
  }
  if (!result.front()) {
    JsonView said = types ? types : pattern ? pattern : config;
    said.complain(
        "layer 0 is to share the keys that a layer before it has chosen, but there is none");
  }
  return result;
}

Value mlir::moec::buildGlmMoeDsa(Checkpoint &checkpoint, ModelBuilder &builder) {
  JsonView config = checkpoint.config();
  DeepseekModel model(config);
  LightningIndexer indexer = model.readIndexer(config, /*interleaved=*/true);
  std::vector<bool> hasIndexer = readIndexerLayers(config, model.layers);
  if (checkpoint.hasJsonProblems())
    return {};
  model.mixture.skipPredictionLayers(checkpoint);
  Value chosen;
  return buildPreNormLayers(
      builder, model,
      [&](const std::string &name, Value x, int64_t layer) {
        std::string attention = name + ".self_attn";
        return model.attention.build(builder, attention, x, [&](Value compressedQuery) {
          if (hasIndexer[layer])
            chosen = indexer.build(builder, attention + ".indexer", x, compressedQuery);
          else if (!chosen) // a slice of the layers may begin here
            checkpoint.complain("--layers: layer " + std::to_string(layer) +
                                " shares the keys that a layer before it has chosen: begin with a "
                                "layer that has an indexer");
          return chosen;
        });
      },
      [&](const std::string &name, Value x, int64_t layer) {
        return model.mixture.build(builder, name, x, layer);
      });
}
