#include "LatentAttention.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec;

LatentAttention::LatentAttention(const moert::JsonView &config,
                                 const TransformerConfig &transformer)
    : hidden(transformer.hidden), heads(transformer.heads),
      queryRank(config.optional("q_lora_rank").integer(1, mostFeatures).value_or(0)),
      latent(readSize(config["kv_lora_rank"], mostFeatures)),
      plain(readSize(config["qk_nope_head_dim"], mostFeatures)),
      rotated(readSize(config["qk_rope_head_dim"], mostFeatures)),
      value(readSize(config["v_head_dim"], mostFeatures)),
      scale(1 / std::sqrt(double(plain + rotated))) {
  if (moert::JsonView view = config.optional("mla_norm_eps"))
    epsilon = readPositive(view, epsilon);
}

Value LatentAttention::build(ModelBuilder &builder, const std::string &name, Value x,
                             ChooseKeys chooseKeys) const {
  ModelBuilder::AttentionParameters parameters;
  parameters.scale = scale;
  std::string projection = name + ".q_proj";
  Value source = x;
  if (queryRank > 0) {
    Value compressed = builder.linear(name + ".q_a_proj", x, queryRank, hasBias);
    source = builder.rmsNorm(name + ".q_a_layernorm", compressed, epsilon);
    projection = name + ".q_b_proj";
  }
  if (chooseKeys)
    parameters.indices = chooseKeys(source);
  Value flat = builder.linear(projection, source, heads * (plain + rotated), /*hasBias=*/false);
  Value query = builder.splitHeads(projection, flat, heads);
  Value plainQuery = builder.slice(projection, query, 0, plain);
  Value rotatedQuery = builder.slice(projection, query, plain, rotated);

  std::string compression = name + ".kv_a_proj_with_mqa";
  Value compressed = builder.linear(compression, x, latent + rotated, hasBias);
  Value content = builder.rmsNorm(name + ".kv_a_layernorm",
                                  builder.slice(compression, compressed, 0, latent), epsilon);
  Value shared =
      builder.splitHeads(name, builder.slice(compression, compressed, latent, rotated), 1);
  if (rotary) {
    rotatedQuery = builder.rope(name, rotatedQuery, *rotary);
    shared = builder.rope(name, shared, *rotary);
  }

  // Of each head: rows that make keys of latents, then rows that make values.
  std::string expansion = name + ".kv_b_proj";
  Value ofHeads = builder.groupRows(
      expansion, builder.matrix(expansion, heads * (plain + value), latent), heads);
  Value toKeys =
      builder.transpose(expansion, builder.slice(expansion, ofHeads, 0, plain, /*dimension=*/1));
  Value toValues = builder.slice(expansion, ofHeads, plain, value, /*dimension=*/1);

  Value absorbed = builder.headLinear(expansion, plainQuery, toKeys);
  Value cache = builder.cache(1, latent + rotated, latent, moe::CacheForm::shared);
  Value key = builder.concatenate(name, {builder.splitHeads(name, content, 1), shared});
  Value latents = builder.attention(name, builder.concatenate(name, {absorbed, rotatedQuery}), key,
                                    /*value=*/Value(), cache, parameters);
  Value merged = builder.mergeHeads(name, builder.headLinear(expansion, latents, toValues));
  if (hasOutputGate) {
    Value gate = builder.linear(name + ".g_proj", x, heads * value, /*hasBias=*/false,
                                Float32Type::get(builder.getContext()));
    merged = builder.sigmoidGate(name, merged, gate);
  }
  return builder.linear(name + ".o_proj", merged, hidden, hasBias);
}
