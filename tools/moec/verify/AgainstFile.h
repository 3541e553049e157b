// Somebody else's results, in a safetensors file.
//
// For each sequence, whose tensors' names begin with "NAME." (or with nothing, where there is one):
//
//   tokens        i32 or i64 [T]    the ids; must be there
//   logits        [T, V]            of every token
//   logits_lastN  [N, V]            of the last N tokens
//   embedding     [T, ...]          the residual stream before the first layer
//   layers.N      [T, ...]          the residual stream after layer N, counted from 0; where it has
//                                   several (hyper-connections), all of them: [T, streams, ...]
//   layers.N.K    [T, ...]          what else layer N gives to later ones, counted from 1 in the
//                                   program's order: the positions that its indexer chose, where
//                                   other layers share them. Integers are i32 or i64
//   hidden.N      [T, ...]          the same as transformers counts: hidden.0 is the embedding,
//                                   hidden.N what layer N - 1 gives; the last one, which lies
//                                   behind the final norm, is not used
//
// Numbers are f32, f64, bf16 or f16. A layer's inputs are what the file says, value by value, or
// else what the interpreter computes. Attention residuals need no tensors of their own: what layers
// keep of earlier ones is those layers' residual stream.
#ifndef MOEC_TOOLS_MOEC_VERIFY_AGAINSTFILE_H
#define MOEC_TOOLS_MOEC_VERIFY_AGAINSTFILE_H

#include "runtime/base/Safetensors.h"

#include <map>
#include <optional>
#include <utility>

namespace moec::verify {

// Rows of numbers, one a token.
struct Rows {
  std::string name;      // of the tensor
  std::size_t first = 0; // the token of the first row
  std::size_t count = 0, width = 0;
  bool isInteger = false;
  std::vector<double> values;

  const double *row(std::size_t token) const {
    return token < first || token >= first + count ? nullptr
                                                   : values.data() + (token - first) * width;
  }
};

struct AgainstSequence {
  std::string name; // "" or "NAME."
  std::vector<std::int32_t> tokens;
  std::optional<Rows> logits;
  // By layer (-1: the embedding) and number (0: the residual stream).
  std::map<std::pair<std::int64_t, std::int64_t>, Rows> layers;
};

// All problems of the file at once.
moert::Result<std::vector<AgainstSequence>>
readAgainstFile(const std::string &path, std::uint64_t vocabulary, std::int64_t layers);

} // namespace moec::verify

#endif
