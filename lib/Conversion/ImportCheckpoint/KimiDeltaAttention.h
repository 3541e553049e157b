//===- KimiDeltaAttention.h - Kimi's linear attention -----------------------------------------===//
//
// A gated delta rule whose state decays by a factor of its own for each key channel. Queries, keys
// and values pass a short causal convolution; the result is normed and gated for each head.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_KIMIDELTAATTENTION_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_KIMIDELTAATTENTION_H

#include "ModelBuilder.h"
#include "TransformerConfig.h"

#include <optional>

namespace mlir::moec {

struct KimiDeltaAttention {
  int64_t hidden, heads, headDimension, taps;
  std::optional<double> lowerBound; ///< of the logarithm of the decay, another function then
  bool hasFullRankGate = false;     ///< g_proj, or g_b_proj g_a_proj of rank headDimension
  double epsilon;                   ///< of o_norm

  /// Reads `linear_attn_config` or, where it is absent, the `linear_*` fields of transformers.
  KimiDeltaAttention(const moert::JsonView &config, const TransformerConfig &transformer);

  /// `x` is normed already.
  Value build(ModelBuilder &builder, const std::string &name, Value x) const;

private:
  Value buildDecay(ModelBuilder &builder, const std::string &name, Value x) const;
  Value buildGate(ModelBuilder &builder, const std::string &name, Value x) const;
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_KIMIDELTAATTENTION_H
