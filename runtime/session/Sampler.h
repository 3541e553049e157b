// How tokens are chosen while generating: options, and the random numbers.
#ifndef MOERT_SESSION_SAMPLER_H
#define MOERT_SESSION_SAMPLER_H

#include "runtime/session/Session.h"

#include <cstdint>

namespace moert {

struct SamplingOptions {
  double temperature = 0; // 0: greedy
  std::int64_t topK = 0;  // keep the k best; 0: all
  double topP = 1;        // keep the fewest best tokens whose probabilities reach this sum
  std::uint64_t seed = 0;
};

// The same options, seed and logits give the same tokens on every machine (up to the last bit of
// expf).
class Sampler {
public:
  static Result<Sampler> create(const SamplingOptions &options);
  // How to choose the next token, from this row of logits.
  TokenChoice next(std::size_t row);

private:
  explicit Sampler(const SamplingOptions &options) : options(options), random(options.seed) {}
  double uniform(); // [0, 1)
  SamplingOptions options;
  std::uint64_t random; // splitmix64's state
};

} // namespace moert

#endif
