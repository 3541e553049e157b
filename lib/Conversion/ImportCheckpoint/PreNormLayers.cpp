#include "PreNormLayers.h"

using namespace mlir;
using namespace mlir::moec;

Value mlir::moec::buildPreNormLayers(ModelBuilder &builder, const TransformerConfig &config,
                                     BuildBranch attention, BuildBranch mixture,
                                     const std::string &prefix) {
  Value x = builder.embedding(prefix + "model.embed_tokens", config.vocabulary, config.hidden);
  for (int64_t layer : builder.getLayers(config.layers)) {
    std::string name = prefix + "model.layers." + std::to_string(layer);
    Value normed = builder.rmsNorm(name + ".input_layernorm", x, config.epsilon);
    x = builder.add(name, x, attention(name, normed, layer));
    normed = builder.rmsNorm(name + ".post_attention_layernorm", x, config.epsilon);
    x = builder.add(name, x, mixture(name, normed, layer));
  }
  // Rows are chosen before the last norm: it and the head then work on wanted rows only.
  x = builder.rmsNorm(prefix + "model.norm", builder.selectLogitRows(x), config.epsilon);
  return builder.linear(prefix + (config.tiedEmbeddings ? "model.embed_tokens" : "lm_head"), x,
                        config.vocabulary, /*hasBias=*/false,
                        Float32Type::get(builder.getContext()));
}
