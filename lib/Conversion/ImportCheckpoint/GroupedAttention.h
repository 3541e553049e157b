//===- GroupedAttention.h - attention with grouped heads, a block of many families ------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_GROUPEDATTENTION_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_GROUPEDATTENTION_H

#include "ModelBuilder.h"
#include "TransformerConfig.h"

namespace mlir::moec {

struct GroupedAttention {
  const TransformerConfig &config;
  const RotaryConfig &rotary;
  bool hasBias = false;      ///< of q_proj, k_proj and v_proj
  bool hasHeadNorms = false; ///< q_norm and k_norm, over each head before the rotation
  bool hasSinks = false;     ///< one more logit a head
  /// q_proj has of each head its query and then a gate: heads are multiplied by sigmoid(gate).
  bool hasGate = false;
  bool hasOutputBias = hasBias; ///< of o_proj

  /// `x` is normed already; `window` as moe.attention has it.
  Value build(ModelBuilder &builder, const std::string &name, Value x, int64_t window) const;
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_GROUPEDATTENTION_H
