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
  /// With a limit gates are at most that, and ups between it and its negative, before the product.
  double limit = 0;

  Value build(ModelBuilder &builder, const std::string &name, Value x,
              const ModelBuilder::Routing &routing) const;

  moe::ActivationAttr getActivation(MLIRContext *context) const;

private:
  Value weight(ModelBuilder &builder, ArrayRef<std::string> names, ArrayRef<int64_t> partShape,
               ArrayRef<int64_t> shape) const;
};

/// Complains about sizes that MXFP4's blocks do not divide and about formats other than it, where the
/// config says that experts are quantised.
void checkCompressedTensors(const moert::JsonView &config, int64_t hidden, int64_t inner,
                            const char *innerKey);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_SWIGLUEXPERTS_H
