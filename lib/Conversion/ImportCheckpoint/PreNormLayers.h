//===- PreNormLayers.h - a stack of layers with two residual branches each --------------------===//
//
//   x = embedding(tokens)
//   per layer:  x = x + attention(rms_norm(x));  x = x + mixture(rms_norm(x))
//   logits = lm_head(rms_norm(x))
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_PRENORMLAYERS_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_PRENORMLAYERS_H

#include "ModelBuilder.h"
#include "TransformerConfig.h"

namespace mlir::moec {

/// A branch of layer `layer`: from the normed input to what is added. `name` is the layer's,
/// "model.layers.3".
using BuildBranch = function_ref<Value(const std::string &name, Value normed, int64_t layer)>;

/// The logits, f32. Names of tensors begin with `prefix`.
Value buildPreNormLayers(ModelBuilder &builder, const TransformerConfig &config,
                         BuildBranch attention, BuildBranch mixture,
                         const std::string &prefix = "");

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_PRENORMLAYERS_H
