#include "GroupedAttention.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec;

Value GroupedAttention::build(ModelBuilder &builder, const std::string &name, Value x,
                              int64_t window) const {
  int64_t dimension = config.headDimension;
  auto project = [&](const char *part, int64_t heads, int64_t width) {
    std::string projection = name + "." + part + "_proj";
    Value flat = builder.linear(projection, x, heads * width, hasBias);
    return builder.splitHeads(projection, flat, heads);
  };
  auto rotate = [&](const char *part, Value projected) {
    if (hasHeadNorms)
      projected = builder.rmsNorm(name + "." + part + "_norm", projected, config.epsilon,
                                  config.hasZeroCentredNorms);
    return builder.rope(name, projected, rotary);
  };
  Value query = project("q", config.heads, hasGate ? 2 * dimension : dimension), gate;
  if (hasGate) {
    gate = builder.slice(name, query, dimension, dimension);
    query = builder.slice(name, query, 0, dimension);
  }
  query = rotate("q", query);
  Value key = rotate("k", project("k", config.kvHeads, dimension));
  Value value = project("v", config.kvHeads, dimension);

  ModelBuilder::AttentionParameters parameters;
  parameters.scale = 1 / std::sqrt(double(dimension));
  parameters.window = window;
  if (hasSinks)
    parameters.sinks = builder.weight(name + ".sinks", {config.heads});
  Value cache = builder.cache(config.kvHeads, dimension, dimension);
  Value heads = builder.attention(name, query, key, value, cache, parameters);
  if (hasGate)
    heads = builder.sigmoidGate(name, heads, gate);
  return builder.linear(name + ".o_proj", builder.mergeHeads(name, heads), config.hidden,
                        hasOutputBias);
}
