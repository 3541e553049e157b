#include "KimiDeltaAttention.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

// Added to the sum of squares of a query or key before the root. No config names it.
static constexpr double unitVectorEpsilon = 1e-6;
static constexpr int64_t mostTaps = 64;

KimiDeltaAttention::KimiDeltaAttention(const JsonView &config, const TransformerConfig &transformer)
    : hidden(transformer.hidden), epsilon(transformer.epsilon) {
  JsonView ofPublisher = config.optional("linear_attn_config");
  auto size = [&](const char *publishers, const char *transformers, int64_t most) {
    return readSize(ofPublisher ? ofPublisher[publishers] : config[transformers], most);
  };
  heads = size("num_heads", "linear_num_heads", mostFeatures);
  headDimension = size("head_dim", "linear_head_dim", mostFeatures);
  JsonView tapsView =
      ofPublisher ? ofPublisher["short_conv_kernel_size"] : config["linear_conv_kernel_dim"];
  taps = tapsView.integer(2, mostTaps).value_or(2);
  hasFullRankGate = ofPublisher.optional("use_full_rank_gate").boolean().value_or(false);
  JsonView bound = ofPublisher.optional("gate_lower_bound");
  lowerBound = bound.number();
  if (lowerBound && !(*lowerBound < 0))
    bound.complain("expected a number below 0, found " + bound.raw()->dump());
}

/// The logarithm of what the state keeps, f32 [tokens, heads, headDimension].
Value KimiDeltaAttention::buildDecay(ModelBuilder &builder, const std::string &name,
                                     Value x) const {
  Value compressed = builder.linear(name + ".f_a_proj", x, headDimension, /*hasBias=*/false);
  Value flat = builder.linear(name + ".f_b_proj", compressed, heads * headDimension,
                              /*hasBias=*/false, Float32Type::get(builder.getContext()));
  // One number a head. Files have [heads], [1, 1, heads, 1], or more than heads: that is padding.
  std::string logarithms = name + ".A_log";
  SmallVector<int64_t> stored = builder.getTensorShape(logarithms);
  bool isPadded = stored.size() == 1 && stored.front() > heads;
  Value aLog = ArrayRef<int64_t>(stored) == ArrayRef<int64_t>{1, 1, heads, 1}
                   ? builder.reshapedWeight(logarithms, stored, {heads})
                   : builder.weight(logarithms, {isPadded ? stored.front() : heads});
  Value bias =
      builder.reshapedWeight(name + ".dt_bias", {heads * headDimension}, {heads, headDimension});
  return builder.decayGate(name, builder.splitHeads(name, flat, heads), aLog, bias, lowerBound);
}

Value KimiDeltaAttention::buildGate(ModelBuilder &builder, const std::string &name, Value x) const {
  int64_t width = heads * headDimension;
  if (hasFullRankGate)
    return builder.linear(name + ".g_proj", x, width, /*hasBias=*/false);
  Value compressed = builder.linear(name + ".g_a_proj", x, headDimension, /*hasBias=*/false);
  return builder.linear(name + ".g_b_proj", compressed, width, /*hasBias=*/false);
}

Value KimiDeltaAttention::build(ModelBuilder &builder, const std::string &name, Value x) const {
  auto project = [&](const std::string &part) {
    std::string path = name + "." + part;
    Value flat = builder.linear(path + "_proj", x, heads * headDimension, /*hasBias=*/false);
    return builder.splitHeads(path, builder.causalConv(path + "_conv1d", flat, taps), heads);
  };
  ModelBuilder::DeltaRuleOperands operands;
  operands.query = project("q");
  operands.key = project("k");
  operands.value = project("v");
  operands.decay = buildDecay(builder, name, x);
  operands.beta =
      builder.sigmoid(name, builder.linear(name + ".b_proj", x, heads, /*hasBias=*/false,
                                           Float32Type::get(builder.getContext())));
  Value attended =
      builder.deltaRule(name, operands, 1 / std::sqrt(double(headDimension)), unitVectorEpsilon);
  Value gate = builder.splitHeads(name, buildGate(builder, name, x), heads);
  Value normed =
      builder.gatedRmsNorm(name + ".o_norm", attended, gate, moe::GateFunction::sigmoid, epsilon);
  return builder.linear(name + ".o_proj", builder.mergeHeads(name, normed), hidden,
                        /*hasBias=*/false);
}
