//===- DeepseekV32.cpp - DeepSeek-V3.2 --------------------------------------------------------===//
//
// DeepSeek-V3 with an indexer in every layer, whose rotation pairs halves where the attention's
// pairs neighbours.
//
//===------------------------------------------------------------------------------------------===//

#include "DeepseekModel.h"
#include "LightningIndexer.h"
#include "ModelFamilies.h"
#include "PreNormLayers.h"

using namespace mlir;
using namespace mlir::moec;

Value mlir::moec::buildDeepseekV32(Checkpoint &checkpoint, ModelBuilder &builder) {
  moert::JsonView config = checkpoint.config();
  DeepseekModel model(config);
  LightningIndexer indexer = model.readIndexer(config, /*interleaved=*/false);
  if (checkpoint.hasJsonProblems())
    return {};
  model.mixture.skipPredictionLayers(checkpoint);
  return buildPreNormLayers(
      builder, model,
      [&](const std::string &name, Value x, int64_t) {
        std::string attention = name + ".self_attn";
        return model.attention.build(builder, attention, x, [&](Value compressedQuery) {
          return indexer.build(builder, attention + ".indexer", x, compressedQuery);
        });
      },
      [&](const std::string &name, Value x, int64_t layer) {
        return model.mixture.build(builder, name, x, layer);
      });
}
