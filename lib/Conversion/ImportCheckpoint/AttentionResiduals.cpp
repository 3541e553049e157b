#include "AttentionResiduals.h"

using namespace mlir;
using namespace mlir::moec;

Value mlir::moec::buildAttentionResidualLayers(ModelBuilder &builder,
                                               const TransformerConfig &config, int64_t blockLayers,
                                               BuildBranch attention, BuildBranch mixture) {
  SmallVector<Value> snapshots;
  auto mix = [&](const std::string &name, Value sum) {
    SmallVector<Value> candidates(snapshots);
    candidates.push_back(sum);
    return builder.mixResiduals(name + "_norm", name + "_proj", candidates, config.epsilon);
  };

  Value sum = builder.embedding(config.root + ".embed_tokens", config.vocabulary, config.hidden);
  for (int64_t layer : builder.getLayers(config.layers)) {
    std::string name = config.root + ".layers." + std::to_string(layer);
    bool hasPast = !snapshots.empty();
    Value x = sum;
    if (hasPast) {
      x = mix(name + ".self_attention_res", sum);
    } else {
      // Files have the tensors of a mix that the first layer does not need.
      builder.weight(name + ".self_attention_res_norm.weight", {config.hidden});
      builder.weight(name + ".self_attention_res_proj.weight", {1, config.hidden});
    }
    bool beginsBlock = layer % blockLayers == 0 || !hasPast;
    if (beginsBlock)
      snapshots.push_back(sum);
    x = attention(name, builder.rmsNorm(name + ".input_layernorm", x, config.epsilon), layer);
    sum = beginsBlock ? x : builder.add(name, sum, x);
    Value y = mix(name + ".mlp_res", sum);
    y = builder.rmsNorm(name + ".post_attention_layernorm", y, config.epsilon);
    sum = builder.add(name, sum, mixture(name, y, layer));
  }
  // Rows are chosen before the last mix: it, the norm and the head then work on wanted rows only.
  sum = builder.selectLogitRows(sum);
  for (Value &snapshot : snapshots)
    snapshot = builder.selectLogitRows(snapshot);
  Value x = mix(config.root + ".output_attn_res", sum);
  x = builder.rmsNorm(config.root + ".norm", x, config.epsilon);
  return builder.linear(config.tiedEmbeddings ? config.root + ".embed_tokens" : config.head, x,
                        config.vocabulary, /*hasBias=*/false,
                        Float32Type::get(builder.getContext()));
}
