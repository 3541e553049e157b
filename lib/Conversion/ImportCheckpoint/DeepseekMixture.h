//===- DeepseekMixture.h - dense layers, then mixtures with shared experts: many families' --------===//
//
// Some layers are dense, the first ones as a rule; the others have a mixture of experts, chosen by
// biased sigmoid scores within groups, and beside it shared experts that every token goes through.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_DEEPSEEKMIXTURE_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_DEEPSEEKMIXTURE_H

#include "SigmoidRouter.h"

namespace mlir::moec {

struct DeepseekMixture {
  SigmoidRouter router;
  int64_t layers, hidden, inner, denseInner, sharedInner;
  std::vector<bool> isDense; // of each layer
  int64_t predictionLayers;  // stored behind the model's layers

  DeepseekMixture(const moert::JsonView &config, const TransformerConfig &sizes);

  /// The dense layer or the mixture of layer `layer`, NAME.mlp.
  Value build(ModelBuilder &builder, const std::string &name, Value x, int64_t layer) const;
  /// Layers that predict further tokens are not built: their tensors may stay unused.
  void skipPredictionLayers(Checkpoint &checkpoint) const;

private:
  void readDenseLayers(const moert::JsonView &config);
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_DEEPSEEKMIXTURE_H
