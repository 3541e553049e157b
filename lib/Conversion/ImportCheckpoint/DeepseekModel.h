//===- DeepseekModel.h - what DeepSeek-V3, V3.2 and GLM's models with their layers share ------===//
//
// Latent attention, one part of the key rotated, and DeepSeek's mixture of experts.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_DEEPSEEKMODEL_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_DEEPSEEKMODEL_H

#include "DeepseekMixture.h"
#include "LatentAttention.h"
#include "LightningIndexer.h"

namespace mlir::moec {

struct DeepseekModel : TransformerConfig {
  LatentAttention attention;
  DeepseekMixture mixture;

  explicit DeepseekModel(const moert::JsonView &config);

  /// An indexer that rotates the first `rotated` elements with the attention's frequencies.
  /// `interleaved` counts where the config does not say how pairs are formed.
  LightningIndexer readIndexer(const moert::JsonView &config, bool interleaved) const;
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_DEEPSEEKMODEL_H
