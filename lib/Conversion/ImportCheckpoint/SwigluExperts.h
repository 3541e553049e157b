//===- SwigluExperts.h - experts of three plain matrices each, a block of many families -------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_SWIGLUEXPERTS_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_SWIGLUEXPERTS_H

#include "ModelBuilder.h"

namespace mlir::moec {

/// silu(gate x) * up x, then down: what most families' experts do, in plain matrices or quantised
/// ones (see ModelBuilder::stackedMatrices).
struct SwigluExperts {
  int64_t experts, hidden, inner;
  /// The matrices of expert 7 are NAME.7.GATE.weight and so on, or those of all experts one tensor:
  /// NAME.gate_up_proj [experts, 2 inner, hidden], all gate rows first, and NAME.down_proj.
  const char *gate, *up, *down;
  moe::ActivationAttr activation = {}; ///< another one than silu

  Value build(ModelBuilder &builder, const std::string &name, Value x,
              const ModelBuilder::Routing &routing) const;
};

/// Complains about formats of compressed-tensors other than MXFP4, int4 and FP8, and about sizes,
/// by their names in the config, that MXFP4's blocks do not divide, where `quantization`, a
/// quantization_config, says that matrices are quantised.
void checkCompressedTensors(const moert::JsonView &config, const moert::JsonView &quantization,
                            ArrayRef<std::pair<const char *, int64_t>> sizes);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_SWIGLUEXPERTS_H
