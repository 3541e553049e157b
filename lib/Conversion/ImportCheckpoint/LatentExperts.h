//===- LatentExperts.h - Kimi's mixture of experts --------------------------------------------===//
//
// The router sees the whole input. Experts may live in a smaller space: one matrix leads into it,
// and behind the weighted sum come a norm and the matrix back. Shared experts are one gated layer;
// they see the whole input and are added without a weight.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_LATENTEXPERTS_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_LATENTEXPERTS_H

#include "SigmoidRouter.h"

namespace mlir::moec {

/// The activation of experts and dense layers.
struct KimiActivation {
  bool isSitu = false; ///< silu otherwise
  double beta = 0, linearBeta = 0;

  /// Reads `hidden_act` and the fields that belong to it.
  explicit KimiActivation(const moert::JsonView &config);
  moe::ActivationAttr get(MLIRContext *context) const;
};

struct LatentExperts {
  SigmoidRouter router;
  KimiActivation activation;
  int64_t hidden, inner, sharedExperts;
  int64_t latent; ///< 0: experts see the whole input
  bool hasNorm;   ///< behind the weighted sum
  double epsilon;

  LatentExperts(const moert::JsonView &config, const TransformerConfig &transformer);

  /// `x` is normed already.
  Value build(ModelBuilder &builder, const std::string &name, Value x) const;
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_LATENTEXPERTS_H
