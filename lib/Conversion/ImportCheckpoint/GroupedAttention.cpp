#include "GroupedAttention.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec;

Value GroupedAttention::build(ModelBuilder &builder, const std::string &name, Value x,
                              int64_t window) const {
  auto project = [&](const char *part, int64_t heads) {
    std::string projection = name + "." + part + "_proj";
    Value flat = builder.linear(projection, x, heads * config.headDimension, hasBias);
    return builder.splitHeads(projection, flat, heads);
  };
  auto rotate = [&](const char *part, int64_t heads) {
    Value projected = project(part, heads);
    if (hasHeadNorms)
      projected = builder.rmsNorm(name + "." + part + "_norm", projected, config.epsilon);
    return builder.rope(name, projected, rotary);
  };
  Value query = rotate("q", config.heads), key = rotate("k", config.kvHeads);
  Value value = project("v", config.kvHeads);

  ModelBuilder::AttentionParameters parameters;
  parameters.scale = 1 / std::sqrt(double(config.headDimension));
  parameters.window = window;
  if (hasSinks)
    parameters.sinks = builder.weight(name + ".sinks", {config.heads});
  Value cache = builder.cache(config.kvHeads, config.headDimension, config.headDimension);
  Value heads = builder.attention(name, query, key, value, cache, parameters);
  return builder.linear(name + ".o_proj", builder.mergeHeads(name, heads), config.hidden, hasBias);
}
