#include "GatedDeltaNet.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec;

using moert::JsonView;

// Added to the sum of squares of a query or key before the root. No config names it.
static constexpr double unitVectorEpsilon = 1e-6;
static constexpr int64_t mostTaps = 64;

GatedDeltaNet::GatedDeltaNet(const JsonView &config, const TransformerConfig &transformer,
                             bool isGroupedByKeyHead)
    : hidden(transformer.hidden), keyHeads(readSize(config["linear_num_key_heads"], mostFeatures)),
      heads(readSize(config["linear_num_value_heads"], mostFeatures)),
      keyDimension(readSize(config["linear_key_head_dim"], mostFeatures)),
      valueDimension(readSize(config["linear_value_head_dim"], mostFeatures)),
      taps(config["linear_conv_kernel_dim"].integer(2, mostTaps).value_or(2)),
      epsilon(transformer.epsilon), isGroupedByKeyHead(isGroupedByKeyHead) {
  if (heads % keyHeads != 0)
    config["linear_num_value_heads"].complain(
        "expected a multiple of linear_num_key_heads = " + std::to_string(keyHeads) + ", found " +
        std::to_string(heads));
}

GatedDeltaNet::Projections GatedDeltaNet::project(ModelBuilder &builder, const std::string &name,
                                                  Value x) const {
  Type f32 = Float32Type::get(builder.getContext());
  Projections result;
  result.mixed = builder.linear(name + ".in_proj_qkv", x, mixedWidth(), /*hasBias=*/false);
  result.gate = builder.linear(name + ".in_proj_z", x, valueWidth(), /*hasBias=*/false);
  result.beta = builder.linear(name + ".in_proj_b", x, heads, /*hasBias=*/false, f32);
  result.decay = builder.linear(name + ".in_proj_a", x, heads, /*hasBias=*/false, f32);
  return result;
}

GatedDeltaNet::Projections GatedDeltaNet::projectGrouped(ModelBuilder &builder,
                                                         const std::string &name, Value x) const {
  Type f32 = Float32Type::get(builder.getContext());
  int64_t headsOfGroup = heads / keyHeads, values = headsOfGroup * valueDimension;
  std::string wide = name + ".in_proj_qkvz", narrow = name + ".in_proj_ba";
  // Rows are put in order once, when weights are loaded: queries, keys, values, gates.
  Value matrix = builder.matrix(wide, mixedWidth() + valueWidth(), hidden);
  matrix = builder.regroupedRows(wide, matrix, keyHeads,
                                 {{0, keyDimension},
                                  {keyDimension, keyDimension},
                                  {2 * keyDimension, values},
                                  {2 * keyDimension + values, values}});
  Value both = builder.product(wide, x, matrix);
  matrix = builder.matrix(narrow, 2 * heads, hidden);
  matrix = builder.regroupedRows(narrow, matrix, keyHeads,
                                 {{0, headsOfGroup}, {headsOfGroup, headsOfGroup}});
  Value factors = builder.product(narrow, x, matrix, f32);
  Projections result;
  result.mixed = builder.slice(wide, both, 0, mixedWidth());
  result.gate = builder.slice(wide, both, mixedWidth(), valueWidth());
  result.beta = builder.slice(narrow, factors, 0, heads);
  result.decay = builder.slice(narrow, factors, heads, heads);
  return result;
}

Value GatedDeltaNet::build(ModelBuilder &builder, const std::string &name, Value x) const {
  Projections projected =
      isGroupedByKeyHead ? projectGrouped(builder, name, x) : project(builder, name, x);
  Value mixed = builder.causalConv(name + ".conv1d", projected.mixed, taps);
  auto part = [&](int64_t first, int64_t count, int64_t width) {
    return builder.splitHeads(name, builder.slice(name, mixed, first, count * width), count);
  };
  ModelBuilder::DeltaRuleOperands operands;
  operands.query = part(0, keyHeads, keyDimension);
  operands.key = part(keyWidth(), keyHeads, keyDimension);
  operands.value = part(2 * keyWidth(), heads, valueDimension);
  operands.decay =
      builder.decayGate(name, projected.decay, builder.weight(name + ".A_log", {heads}),
                        builder.weight(name + ".dt_bias", {heads}),
                        /*lowerBound=*/std::nullopt);
  operands.beta = builder.sigmoid(name, projected.beta);
  Value attended =
      builder.deltaRule(name, operands, 1 / std::sqrt(double(keyDimension)), unitVectorEpsilon);
  Value gate = builder.splitHeads(name, projected.gate, heads);
  Value normed =
      builder.gatedRmsNorm(name + ".norm", attended, gate, moe::GateFunction::silu, epsilon);
  return builder.linear(name + ".out_proj", builder.mergeHeads(name, normed), hidden,
                        /*hasBias=*/false);
}
