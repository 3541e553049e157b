//===- GatedDeltaNet.h - Qwen's linear attention ----------------------------------------------===//
//
// A gated delta rule whose state decays by one factor a head. Queries, keys and values pass one
// short causal convolution; groups of value heads share a key head; the result is normed and then
// gated.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_GATEDDELTANET_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_GATEDDELTANET_H

#include "ModelBuilder.h"
#include "TransformerConfig.h"

namespace mlir::moec {

struct GatedDeltaNet {
  int64_t hidden, keyHeads, heads, keyDimension, valueDimension, taps;
  double epsilon; ///< of the norm
  /// Queries, keys, values and gates are rows of in_proj_qkvz, those of one key head together, and
  /// in_proj_ba likewise; otherwise of in_proj_qkv, in_proj_z, in_proj_b and in_proj_a.
  bool isGroupedByKeyHead;

  GatedDeltaNet(const moert::JsonView &config, const TransformerConfig &transformer,
                bool isGroupedByKeyHead);

  /// `x` is normed already.
  Value build(ModelBuilder &builder, const std::string &name, Value x) const;

private:
  struct Projections {
    Value mixed;       // queries, keys, values, before the convolution
    Value gate;        // [tokens, heads * valueDimension]
    Value beta, decay; // f32 [tokens, heads], before their functions
  };
  Projections project(ModelBuilder &builder, const std::string &name, Value x) const;
  Projections projectGrouped(ModelBuilder &builder, const std::string &name, Value x) const;

  int64_t keyWidth() const { return keyHeads * keyDimension; }
  int64_t valueWidth() const { return heads * valueDimension; }
  int64_t mixedWidth() const { return 2 * keyWidth() + valueWidth(); }
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_GATEDDELTANET_H
