#include "runtime/session/Sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moert {

Result<Sampler> Sampler::create(const SamplingOptions &options) {
  Problems problems("sampling");
  if (!std::isfinite(options.temperature) || options.temperature < 0)
    problems.add("the temperature is " + std::to_string(options.temperature) +
                 "; expected 0 or more");
  if (options.topK < 0)
    problems.add("top-k is " + std::to_string(options.topK) + "; expected 0 or more");
  if (!(options.topP > 0 && options.topP <= 1))
    problems.add("top-p is " + std::to_string(options.topP) + "; expected more than 0, at most 1");
  MOERT_RETURN_IF_ERROR(problems.toStatus(ErrorCode::InvalidArgument));
  return Sampler(options);
}

double Sampler::uniform() {
  // splitmix64: small, and the same everywhere.
  random += 0x9e3779b97f4a7c15;
  std::uint64_t bits = random;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  bits ^= bits >> 31;
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

TokenChoice Sampler::next(std::size_t row) {
  TokenChoice choice;
  choice.row = row;
  constexpr double hottest = std::numeric_limits<float>::max();
  choice.temperature = static_cast<float>(std::min(options.temperature, hottest));
  choice.topK = static_cast<std::int32_t>(std::min<std::int64_t>(options.topK, INT32_MAX));
  choice.topP = options.topP;
  if (options.temperature != 0 && options.topK != 1)
    choice.random = uniform();
  return choice;
}

} // namespace moert
