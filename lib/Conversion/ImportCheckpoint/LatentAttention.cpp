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
      scale(1 / std::sqrt(double(plain + rotated))) {}

/// [tokens, heads, plain + rotated]
Value LatentAttention::buildQuery(ModelBuilder &builder, const std::string &name, Value x) const {
  std::string projection = name + ".q_proj";
  if (queryRank > 0) {
    Value compressed = builder.linear(name + ".q_a_proj", x, queryRank, hasBias);
    x = builder.rmsNorm(name + ".q_a_layernorm", compressed, epsilon);
    projection = name + ".q_b_proj";
  }
  Value flat = builder.linear(projection, x, heads * (plain + rotated), /*hasBias=*/false);
  Value query = builder.splitHeads(projection, flat, heads);
  if (!rotary)
    return query;
  RotaryConfig ofQuery = *rotary;
  ofQuery.offset = plain;
  return builder.rope(name, query, ofQuery);
}

Value LatentAttention::build(ModelBuilder &builder, const std::string &name, Value x) const {
  Value query = buildQuery(builder, name, x);
  std::string compression = name + ".kv_a_proj_with_mqa";
  Value compressed = builder.linear(compression, x, latent + rotated, hasBias);
  Value content = builder.rmsNorm(name + ".kv_a_layernorm",
                                  builder.slice(compression, compressed, 0, latent), epsilon);
  Value shared = builder.slice(compression, compressed, latent, rotated);
  if (rotary)
    shared = builder.mergeHeads(
        name, builder.rope(name, builder.splitHeads(name, shared, 1), *rotary));

  std::string expansion = name + ".kv_b_proj";
  Value flat = builder.linear(expansion, content, heads * (plain + value), /*hasBias=*/false);
  Value expanded = builder.splitHeads(expansion, flat, heads);
  Value key = builder.concatenate(name, {builder.slice(expansion, expanded, 0, plain),
                                         builder.repeatHead(name, shared, heads)});
  Value values = builder.slice(expansion, expanded, plain, value);

  ModelBuilder::AttentionParameters parameters;
  parameters.scale = scale;
  Value cache = builder.cache(heads, plain + rotated, value);
  Value attended = builder.attention(name, query, key, values, cache, parameters);
  Value merged = builder.mergeHeads(name, attended);
  if (hasOutputGate) {
    Value gate = builder.linear(name + ".g_proj", x, heads * value, /*hasBias=*/false,
                                Float32Type::get(builder.getContext()));
    merged = builder.sigmoidGate(name, merged, gate);
  }
  return builder.linear(name + ".o_proj", merged, hidden, hasBias);
}
