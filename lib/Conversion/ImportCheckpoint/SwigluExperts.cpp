#include "SwigluExperts.h"

using namespace mlir;
using namespace mlir::moec;

Value SwigluExperts::build(ModelBuilder &builder, const std::string &name, Value x,
                           const ModelBuilder::Routing &routing) const {
  SmallVector<std::string> gateUpNames, downNames;
  for (int64_t expert = 0; expert < experts; ++expert) {
    std::string prefix = name + "." + std::to_string(expert) + ".";
    // All gate rows of an expert come before its up rows.
    gateUpNames.append({prefix + gate + ".weight", prefix + up + ".weight"});
    downNames.push_back(prefix + down + ".weight");
  }
  ModelBuilder::ExpertWeights weights;
  weights.gateUp =
      builder.stackedWeight(gateUpNames, {inner, hidden}, {experts, 2 * inner, hidden});
  weights.down = builder.stackedWeight(downNames, {hidden, inner}, {experts, hidden, inner});
  auto activation = moe::ActivationAttr::get(builder.getContext(), moe::ActivationKind::silu, 1.0,
                                             0.0, 0.0, /*interleaved=*/false);
  return builder.experts(name, x, routing, weights, activation);
}
