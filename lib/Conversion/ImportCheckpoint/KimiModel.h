//===- KimiModel.h - the text model of Kimi-Linear and Kimi K3 --------------------------------===//
//
// Layers of linear attention and, every few, of latent attention without positions; mixtures of
// experts behind a few dense layers. K3 has more of it: attention residuals, experts in a latent
// space, gates behind the attention. The config says which of that is there.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_KIMIMODEL_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_KIMIMODEL_H

#include "KimiDeltaAttention.h"
#include "LatentAttention.h"
#include "LatentExperts.h"
#include "LightningIndexer.h"

namespace mlir::moec {

struct KimiConfig : TransformerConfig {
  KimiDeltaAttention deltaAttention;
  LatentAttention latentAttention;
  LatentExperts experts;
  std::vector<bool> hasLatentAttention, isDense; // of each layer
  int64_t denseInner = 0;
  std::optional<LightningIndexer> indexer; // in each layer of latent attention
  int64_t blockLayers; // of a block of attention residuals; 0: ordinary residuals

  /// Of the language model; `whole` may have a quantization_config, too.
  KimiConfig(const moert::JsonView &config, const moert::JsonView &whole);

private:
  void readAttentionLayers(const moert::JsonView &config);
  void readDenseLayers(const moert::JsonView &config);
};

/// The logits.
Value buildKimiModel(ModelBuilder &builder, const KimiConfig &config);

/// Reads a list of layers that counts them from 1: for each layer how often it is there.
std::vector<int64_t> countLayers(const moert::JsonView &list, int64_t layers);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_KIMIMODEL_H
