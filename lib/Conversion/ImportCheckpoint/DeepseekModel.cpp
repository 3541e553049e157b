#include "DeepseekModel.h"

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

/// YaRN makes scores larger, too: by the square of what DeepSeek's configs call mscale_all_dim.
static double readScoreMagnitude(const JsonView &config) {
  JsonView rope = config.optional("rope_parameters");
  if (!rope)
    rope = config.optional("rope_scaling");
  double scale = rope.optional("mscale_all_dim").number().value_or(0);
  JsonView factor = rope.optional("factor");
  if (scale == 0 || !factor)
    return 1;
  double magnitude = yarnMagnitude(factor.number().value_or(1), scale);
  return magnitude * magnitude;
}

DeepseekModel::DeepseekModel(const JsonView &config)
    : TransformerConfig(config), attention(config, *this), mixture(config, *this) {
  attention.hasBias = config.optional("attention_bias").boolean().value_or(false);
  RotaryConfig rotary = readRotaryConfig(config, attention.rotated, /*defaultTheta=*/0);
  rotary.interleaved = config.optional("rope_interleave").boolean().value_or(true);
  attention.rotary = rotary;
  attention.scale *= readScoreMagnitude(config);
}

LightningIndexer DeepseekModel::readIndexer(const JsonView &config, bool interleaved) const {
  LightningIndexer indexer(config);
  if (attention.queryRank == 0)
    (void)config["q_lora_rank"].integer(
        1, mostFeatures); // complains: indexers' queries are made of it
  if (indexer.dimension < attention.rotated)
    config["index_head_dim"].complain(
        "expected at least qk_rope_head_dim = " + std::to_string(attention.rotated) + ", found " +
        std::to_string(indexer.dimension));
  indexer.rotary = attention.rotary;
  indexer.rotary->interleaved =
      config.optional("indexer_rope_interleave").boolean().value_or(interleaved);
  return indexer;
}
