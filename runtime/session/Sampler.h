// Chooses the next token from a row of logits.
#ifndef MOERT_SESSION_SAMPLER_H
#define MOERT_SESSION_SAMPLER_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <span>
#include <vector>

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
  // Equal logits: the lowest id first. NaN counts as the lowest value. `logits` is not empty.
  std::int32_t sample(std::span<const float> logits);

private:
  explicit Sampler(const SamplingOptions &options) : options(options), random(options.seed) {}
  double uniform(); // [0, 1)
  SamplingOptions options;
  std::uint64_t random; // splitmix64's state
  std::vector<std::int32_t> order;
  std::vector<double> weights;
};

std::int32_t greedyToken(std::span<const float> logits);

} // namespace moert

#endif
