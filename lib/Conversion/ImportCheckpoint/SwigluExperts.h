//===- SwigluExperts.h - experts of three plain matrices each, a block of many families -------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_SWIGLUEXPERTS_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_SWIGLUEXPERTS_H

#include "ModelBuilder.h"

namespace mlir::moec {

/// silu(gate x) * up x, then down: what most families' experts do. Matrices are plain or, where a
/// tensor of their name and "_packed" is there, MXFP4 of compressed-tensors.
struct SwigluExperts {
  int64_t experts, hidden, inner;
  /// The matrices of expert 7 are NAME.7.GATE.weight and so on.
  const char *gate, *up, *down;
  moe::ActivationAttr activation = {}; ///< another one than silu

  Value build(ModelBuilder &builder, const std::string &name, Value x,
              const ModelBuilder::Routing &routing) const;

private:
  Value weight(ModelBuilder &builder, ArrayRef<std::string> names, ArrayRef<int64_t> partShape,
               ArrayRef<int64_t> shape) const;
};

/// Complains about formats other than MXFP4 and, where the config has a quantisation, about sizes, by
/// their names in the config, that MXFP4's blocks do not divide.
void checkCompressedTensors(const moert::JsonView &quantization, const moert::JsonView &config,
                            ArrayRef<std::pair<const char *, int64_t>> sizes);

/// Complains about sizes that MXFP4's blocks do not divide and about formats other than it, where the
/// config says that experts are quantised.
void checkCompressedTensors(const moert::JsonView &config, int64_t hidden, int64_t inner,
                            const char *innerKey);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_SWIGLUEXPERTS_H
