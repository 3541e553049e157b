//===- DeepseekModel.h - what DeepSeek-V3, V3.2 and GLM's models with their layers share ------===//
//
// Latent attention, one part of the key rotated. Some layers are dense, the first ones as a rule;
// the others have a mixture of experts, chosen by biased sigmoid scores within groups, and beside
// it shared experts that every token goes through.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_DEEPSEEKMODEL_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_DEEPSEEKMODEL_H

#include "LatentAttention.h"
#include "LightningIndexer.h"
#include "SigmoidRouter.h"

namespace mlir::moec {

struct DeepseekModel : TransformerConfig {
  LatentAttention attention;
  SigmoidRouter router;
  int64_t inner, denseInner, sharedInner;
  std::vector<bool> isDense; // of each layer
  int64_t predictionLayers;  // stored behind the model's layers

  explicit DeepseekModel(const moert::JsonView &config);

  /// An indexer that rotates the first `rotated` elements with the attention's frequencies.
  /// `interleaved` counts where the config does not say how pairs are formed.
  LightningIndexer readIndexer(const moert::JsonView &config, bool interleaved) const;
  /// The dense layer or the mixture of layer `layer`, NAME.mlp.
  Value buildFeedForward(ModelBuilder &builder, const std::string &name, Value x,
                         int64_t layer) const;
  /// Layers that predict further tokens are not built: their tensors may stay unused.
  void skipPredictionLayers(Checkpoint &checkpoint) const;

private:
  void readDenseLayers(const moert::JsonView &config);
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_DEEPSEEKMODEL_H
