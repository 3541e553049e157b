//===- LatentAttention.h - multi-head latent attention, a block of many families --------------===//
//
// Keys and values of all heads are made of one small vector a token, the latent, and of one key
// part that heads share and that alone is rotated (or nothing is, without `rotary`). They are never
// made: queries are taken into the latent space, attention is over latents, and what it gives is
// taken out of the latent space ("absorbed"). So a token's row of the cache is its latent and the
// shared part.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_LATENTATTENTION_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_LATENTATTENTION_H

#include "ModelBuilder.h"
#include "TransformerConfig.h"

#include <optional>

namespace mlir::moec {

struct LatentAttention {
  int64_t hidden, heads;
  int64_t queryRank; ///< of the queries' latent; 0: queries are projected at once, by q_proj
  int64_t latent;    ///< elements of the latent of keys and values
  int64_t plain;     ///< elements of a head's key that come from the latent
  int64_t rotated;   ///< elements of the key part that heads share
  int64_t value;     ///< elements of a head's value
  /// Of q_a_layernorm and kv_a_layernorm. The publishers' code leaves it at this default, whatever
  /// `rms_norm_eps` says; others' code takes that. A field `mla_norm_eps`, which no published
  /// config has, says otherwise.
  double epsilon = 1e-6;
  double scale;                       ///< of the scores
  std::optional<RotaryConfig> rotary; ///< absent: no positions (NoPE)
  bool hasBias = false;               ///< of q_a_proj, kv_a_proj_with_mqa and o_proj
  bool hasOutputGate = false;         ///< heads are multiplied by sigmoid(g_proj x)

  /// Reads the sizes; `scale` is that of a whole key. The rotation is left to the family.
  LatentAttention(const moert::JsonView &config, const TransformerConfig &transformer);

  /// Chooses the positions that a token sees, given the queries' latent after its norm.
  using ChooseKeys = function_ref<Value(Value compressedQuery)>;

  /// `x` is normed already. With `chooseKeys` attention is sparse; queries then need a latent.
  Value build(ModelBuilder &builder, const std::string &name, Value x,
              ChooseKeys chooseKeys = {}) const;
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_LATENTATTENTION_H
