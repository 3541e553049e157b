//===- SigmoidRouter.h - a router that chooses by biased scores, a block of many families -----===//
//
// Scores of all experts; the best k by score + bias, among the best groups; their weights are the
// scores without the bias. DeepSeek calls it "noaux_tc".
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_SIGMOIDROUTER_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_SIGMOIDROUTER_H

#include "ModelBuilder.h"
#include "TransformerConfig.h"

namespace mlir::moec {

struct SigmoidRouter {
  int64_t experts, topK, groups, topGroups;
  moe::ScoreFunction score;
  bool renormalize;
  double scale;

  /// Reads DeepSeek's names of the fields or, where these are absent, Kimi's.
  explicit SigmoidRouter(const moert::JsonView &config);

  /// The weights NAME.weight and NAME.e_score_correction_bias. Logits are f32.
  ModelBuilder::Routing build(ModelBuilder &builder, const std::string &name, Value x) const;
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_SIGMOIDROUTER_H
