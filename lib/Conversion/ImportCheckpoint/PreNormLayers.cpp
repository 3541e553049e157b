#include "PreNormLayers.h"

using namespace mlir;
using namespace mlir::moec;

Value mlir::moec::buildPreNormLayers(ModelBuilder &builder, const TransformerConfig &config,
                                     BuildBranch attention, BuildBranch mixture) {
  auto norm = [&](const std::string &name, Value x) {
    return builder.rmsNorm(name, x, config.epsilon, config.hasZeroCentredNorms);
  };
  std::string embedding = config.root + ".embed_tokens";
  Value x = builder.embedding(embedding, config.vocabulary, config.hidden);
  for (int64_t layer : builder.getLayers(config.layers)) {
    std::string name = config.root + ".layers." + std::to_string(layer);
    Value normed = norm(name + ".input_layernorm", x);
    x = builder.add(name, x, attention(name, normed, layer));
    normed = norm(name + ".post_attention_layernorm", x);
    x = builder.add(name, x, mixture(name, normed, layer));
  }
  // Rows are chosen before the last norm: it and the head then work on wanted rows only.
  x = norm(config.root + ".norm", builder.selectLogitRows(x));
  return builder.linear(config.tiedEmbeddings ? embedding : config.head, x, config.vocabulary,
                        /*hasBias=*/false, Float32Type::get(builder.getContext()));
}
