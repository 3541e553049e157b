#include "LightningIndexer.h"

#include "TransformerConfig.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec;

LightningIndexer::LightningIndexer(const moert::JsonView &config)
    : heads(readSize(config["index_n_heads"], mostFeatures)),
      dimension(readSize(config["index_head_dim"], mostFeatures)),
      topK(readSize(config["index_topk"], moe::SelectKeysOp::mostKeys)) {}

Value LightningIndexer::build(ModelBuilder &builder, const std::string &name, Value x,
                              Value compressedQuery) const {
  Value query = builder.splitHeads(
      name, builder.linear(name + ".wq_b", compressedQuery, heads * dimension, /*hasBias=*/false),
      heads);
  Value key = builder.linear(name + ".wk", x, dimension, /*hasBias=*/false);
  key = builder.splitHeads(name, builder.layerNorm(name + ".k_norm", key, epsilon), 1);
  if (rotary) {
    query = builder.rope(name, query, *rotary);
    key = builder.rope(name, key, *rotary);
  }
  Value weights = builder.linear(name + ".weights_proj", x, heads, /*hasBias=*/false,
                                 Float32Type::get(builder.getContext()));
  Value cache = builder.cache(1, dimension, 0, moe::CacheForm::shared);
  return builder.selectKeys(name, query, weights, key, cache, topK,
                            1 / std::sqrt(double(heads) * double(dimension)));
}
