#include "SwigluExperts.h"

#include "runtime/base/Json.h"

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
  weights.gateUp = weight(builder, gateUpNames, {inner, hidden}, {experts, 2 * inner, hidden});
  weights.down = weight(builder, downNames, {hidden, inner}, {experts, hidden, inner});
  return builder.experts(name, x, routing, weights, getActivation(builder.getContext()));
}

moe::ActivationAttr SwigluExperts::getActivation(MLIRContext *context) const {
  auto kind = limit > 0 ? moe::ActivationKind::swiglu : moe::ActivationKind::silu;
  return moe::ActivationAttr::get(context, kind, 1.0, 0.0, limit, /*interleaved=*/false);
}

Value SwigluExperts::weight(ModelBuilder &builder, ArrayRef<std::string> names,
                            ArrayRef<int64_t> partShape, ArrayRef<int64_t> shape) const {
  // Which tensors are packed is read from the tensors: lists of exceptions in configs are not exact.
  return builder.hasTensor(names.front() + "_packed")
             ? builder.stackedMxfp4Weight(names, partShape, shape)
             : builder.stackedWeight(names, partShape, shape);
}

void mlir::moec::checkCompressedTensors(const moert::JsonView &config, int64_t hidden,
                                        int64_t inner, const char *innerKey) {
  moert::JsonView quantization = config.optional("quantization_config");
  if (!quantization)
    return;
  moert::JsonView format = quantization["format"];
  constexpr std::string_view known = "mxfp4-pack-quantized";
  if (auto name = format.string(); name && *name != known)
    format.complain("expected " + moert::inQuotes(known) + ", found " + moert::inQuotes(*name));
  for (auto [key, size] : {std::pair("hidden_size", hidden), {innerKey, inner}})
    if (size % moe::BlockTensorType::mxfp4BlockSize != 0)
      config[key].complain("expected a multiple of 32, the block size of the MXFP4 experts, found " +
                           std::to_string(size));
}
