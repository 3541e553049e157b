//===- LightningIndexer.h - which keys a sparse attention looks at, a block of many families --===//
//
// Small queries, made of the attention's compressed query, meet one small key a token; a token's
// best keys, by a weighted sum of its heads' positive scores, are what its attention sees.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_LIGHTNINGINDEXER_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_LIGHTNINGINDEXER_H

#include "ModelBuilder.h"

#include <optional>

namespace mlir::moec {

struct LightningIndexer {
  int64_t heads, dimension, topK;
  double epsilon = 1e-6; ///< of k_norm, a layer norm; a constant of the publishers' code
  std::optional<RotaryConfig>
      rotary; ///< of queries and keys; its pairs need not be the attention's

  LightningIndexer(int64_t heads, int64_t dimension, int64_t topK)
      : heads(heads), dimension(dimension), topK(topK) {}
  /// Reads index_n_heads, index_head_dim and index_topk. The rotation is left to the family.
  explicit LightningIndexer(const moert::JsonView &config);

  /// `x` is the attention's input. The result is moe.attention's indices.
  Value build(ModelBuilder &builder, const std::string &name, Value x, Value compressedQuery) const;
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_LIGHTNINGINDEXER_H
