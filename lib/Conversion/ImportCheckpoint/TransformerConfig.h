//===- TransformerConfig.h - what config.json says of every family ----------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_TRANSFORMERCONFIG_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_TRANSFORMERCONFIG_H

#include "RotaryConfig.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::moec {

// Bounds far above any model, so that products of two sizes fit in 64 bits.
inline constexpr int64_t mostLayers = 4096, mostFeatures = 1 << 24, mostExperts = 1 << 16;

/// Problems become complaints of the config, and stand-ins are read in their place.
struct TransformerConfig {
  int64_t vocabulary, hidden, layers, heads, kvHeads, headDimension;
  double epsilon;
  bool tiedEmbeddings;
  // What families say, not configs.
  std::string root = "model";       ///< what the names of all tensors but the head's begin with
  std::string head = "lm_head";     ///< from features to logits
  bool hasZeroCentredNorms = false; ///< norms multiply by 1 + weight

  explicit TransformerConfig(const moert::JsonView &config);
};

/// A size of at least 1.
int64_t readSize(const moert::JsonView &view, int64_t most);
double readPositive(const moert::JsonView &view, double otherwise);

struct ExpertsConfig {
  int64_t experts, topK;

  /// The number of experts has one of the `names`; the last one is told as missing.
  ExpertsConfig(const moert::JsonView &config, std::initializer_list<const char *> names);
};

/// For each layer how many positions it sees: `sliding_window` where `layer_types` says
/// "sliding_attention" or, without such a list, where `slides` does; 0: all of them.
std::vector<int64_t> readWindows(const moert::JsonView &config, int64_t layers,
                                 bool (*slides)(int64_t layer));

/// Of each layer, whether it has a dense layer in place of a mixture: those of `mlp_only_layers`,
/// and those whose number, from 1, `decoder_sparse_step` does not divide.
std::vector<bool> readDenseLayers(const moert::JsonView &config, int64_t layers);

/// Complains about an activation other than the expected one.
void expectActivation(const moert::JsonView &config, std::string_view expected);
/// Complains about a quantisation that the family's tensors do not tell by themselves.
void expectQuantization(const moert::JsonView &config,
                        std::initializer_list<std::string_view> known);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_TRANSFORMERCONFIG_H
