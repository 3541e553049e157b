#include "SwigluExperts.h"

#include "runtime/base/Json.h"

using namespace mlir;
using namespace mlir::moec;

Value SwigluExperts::build(ModelBuilder &builder, const std::string &name, Value x,
                           const ModelBuilder::Routing &routing) const {
  SmallVector<std::string> gateUpNames, downNames;
  std::string fusedGateUp = name + ".gate_up_proj", fusedDown = name + ".down_proj";
  bool isFused = builder.hasTensor(fusedGateUp);
  for (int64_t expert = 0; expert < (isFused ? 0 : experts); ++expert) {
    std::string prefix = name + "." + std::to_string(expert) + ".";
    // All gate rows of an expert come before its up rows.
    gateUpNames.append({prefix + gate + ".weight", prefix + up + ".weight"});
    downNames.push_back(prefix + down + ".weight");
  }
  ModelBuilder::ExpertWeights weights;
  SmallVector<int64_t> gateUpShape = {experts, 2 * inner, hidden},
                       downShape = {experts, hidden, inner};
  weights.gateUp = isFused ? builder.stackedMatrices({fusedGateUp}, gateUpShape, gateUpShape)
                           : builder.stackedMatrices(gateUpNames, {inner, hidden}, gateUpShape);
  weights.down = isFused ? builder.stackedMatrices({fusedDown}, downShape, downShape)
                         : builder.stackedMatrices(downNames, {hidden, inner}, downShape);
  auto silu = moe::ActivationAttr::get(builder.getContext(), moe::ActivationKind::silu, 1.0, 0.0,
                                       0.0, /*interleaved=*/false);
  return builder.experts(name, x, routing, weights, activation ? activation : silu);
}

/// Numbers of so many bits and of the type that need no zero point.
static void checkWeights(const moert::JsonView &quantization, int64_t bitsOfNumber,
                         const char *type) {
  for (auto &[name, group] : quantization.optional("config_groups").members()) {
    moert::JsonView weights = group.optional("weights");
    moert::JsonView bits = weights.optional("num_bits"), kind = weights.optional("type"),
                    symmetric = weights.optional("symmetric");
    if (auto found = bits.integer(); found && *found != bitsOfNumber)
      bits.complain("expected " + std::to_string(bitsOfNumber) + ", found " +
                    std::to_string(*found));
    if (auto found = kind.string(); found && *found != type)
      kind.complain("expected " + moert::inQuotes(type) + ", found " + moert::inQuotes(*found));
    if (!symmetric.boolean().value_or(true))
      symmetric.complain("expected true: zero points are not supported");
  }
}

void mlir::moec::checkCompressedTensors(const moert::JsonView &config,
                                        const moert::JsonView &quantization,
                                        ArrayRef<std::pair<const char *, int64_t>> sizes) {
  if (quantization.optional("quant_method").string() != "compressed-tensors")
    return;
  constexpr std::string_view mxfp4 = "mxfp4-pack-quantized", int4 = "pack-quantized",
                             fp8 = "float-quantized";
  moert::JsonView format = quantization["format"];
  auto name = format.string();
  if (name == int4)
    return checkWeights(quantization, 4, "int");
  if (name == fp8)
    return checkWeights(quantization, 8, "float");
  if (name && *name != mxfp4)
    format.complain("expected " + moert::inQuotes(mxfp4) + ", " + moert::inQuotes(int4) + " or " +
                    moert::inQuotes(fp8) + ", found " + moert::inQuotes(*name));
  for (auto [key, size] : sizes)
    if (size % moe::BlockTensorType::mxfp4BlockSize != 0)
      config[key].complain(
          "expected a multiple of 32, the block size of the MXFP4 experts, found " +
          std::to_string(size));
}
