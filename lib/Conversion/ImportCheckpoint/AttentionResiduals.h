//===- AttentionResiduals.h - a stack of layers that attends to its own past ------------------===//
//
//   p = embedding(tokens);  b = []                # p: what was added up, b: snapshots of it
//   per layer:  x = mix(b, p)                     # just p while there are no snapshots
//               at the first layer of a block:  b = b + [p];  p = nothing
//               p = p + attention(rms_norm(x))
//               p = p + mixture(rms_norm(mix(b, p)))
//   logits = lm_head(rms_norm(mix(b, p)))
//
// A mix only feeds the branch behind it; nothing but branches is added to p.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_ATTENTIONRESIDUALS_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_ATTENTIONRESIDUALS_H

#include "PreNormLayers.h"

namespace mlir::moec {

/// The logits, f32. A block begins every `blockLayers` layers. Names of tensors begin with
/// `prefix`.
Value buildAttentionResidualLayers(ModelBuilder &builder, const TransformerConfig &config,
                                   int64_t blockLayers, const std::string &prefix,
                                   BuildBranch attention, BuildBranch mixture);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_ATTENTIONRESIDUALS_H
