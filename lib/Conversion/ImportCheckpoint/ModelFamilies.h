//===- ModelFamilies.h - the architectures that the importer knows
//-----------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_MODELFAMILIES_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_MODELFAMILIES_H

#include "ModelBuilder.h"

namespace mlir::moec {

/// Builds the step up to the logits, or null after complaints about the config.
using BuildModel = Value (*)(Checkpoint &checkpoint, ModelBuilder &builder);

struct ModelFamily {
  StringRef architecture; // as in config.json's `architectures`
  StringRef modelType;    // as in its `model_type`
  StringRef embedding;    // the tensor whose type counts where the config names none
  BuildModel build;
};

Value buildDeepseekV4(Checkpoint &checkpoint, ModelBuilder &builder);
Value buildDeepseekV3(Checkpoint &checkpoint, ModelBuilder &builder);
Value buildDeepseekV32(Checkpoint &checkpoint, ModelBuilder &builder);
Value buildGlm4Moe(Checkpoint &checkpoint, ModelBuilder &builder);
Value buildGlmMoeDsa(Checkpoint &checkpoint, ModelBuilder &builder);
Value buildGptOss(Checkpoint &checkpoint, ModelBuilder &builder);
Value buildKimiK3(Checkpoint &checkpoint, ModelBuilder &builder);
Value buildKimiK31(Checkpoint &checkpoint, ModelBuilder &builder);
Value buildKimiLinear(Checkpoint &checkpoint, ModelBuilder &builder);
Value buildMixtral(Checkpoint &checkpoint, ModelBuilder &builder);
Value buildQwen3Moe(Checkpoint &checkpoint, ModelBuilder &builder);
Value buildQwen3Next(Checkpoint &checkpoint, ModelBuilder &builder);
Value buildQwen35Moe(Checkpoint &checkpoint, ModelBuilder &builder);

ArrayRef<ModelFamily> getModelFamilies();

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_MODELFAMILIES_H
