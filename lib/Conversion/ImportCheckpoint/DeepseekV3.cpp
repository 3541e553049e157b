//===- DeepseekV3.cpp - DeepSeek-V3 and R1 ----------------------------------------------------===//
//
// All of it is in DeepseekModel.
//
//===------------------------------------------------------------------------------------------===//

#include "DeepseekModel.h"
#include "ModelFamilies.h"
#include "PreNormLayers.h"

using namespace mlir;
using namespace mlir::moec;

Value mlir::moec::buildDeepseekV3(Checkpoint &checkpoint, ModelBuilder &builder) {
  DeepseekModel model(checkpoint.config());
  if (checkpoint.hasJsonProblems())
    return {};
  model.mixture.skipPredictionLayers(checkpoint);
  return buildPreNormLayers(
      builder, model,
      [&](const std::string &name, Value x, int64_t) {
        return model.attention.build(builder, name + ".self_attn", x);
      },
      [&](const std::string &name, Value x, int64_t layer) {
        return model.mixture.build(builder, name, x, layer);
      });
}
