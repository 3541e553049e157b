//===- SwigluExperts.h - experts of three plain matrices each, a block of many families -------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_SWIGLUEXPERTS_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_SWIGLUEXPERTS_H

#include "ModelBuilder.h"

namespace mlir::moec {

/// silu(gate x) * up x, then down: what most families' experts do.
struct SwigluExperts {
  int64_t experts, hidden, inner;
  /// The matrices of expert 7 are NAME.7.GATE.weight and so on.
  const char *gate, *up, *down;

  Value build(ModelBuilder &builder, const std::string &name, Value x,
              const ModelBuilder::Routing &routing) const;
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_SWIGLUEXPERTS_H
