#include "runtime/session/Sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace moert {

namespace {

// NaN never wins against a number.
float orLowest(float value) {
  return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
}

} // namespace

std::int32_t greedyToken(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < logits.size(); ++i)
    if (orLowest(logits[i]) > orLowest(logits[best]))
      best = i;
  return static_cast<std::int32_t>(best);
}

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

std::int32_t Sampler::sample(std::span<const float> logits) {
  if (options.temperature == 0 || options.topK == 1)
    return greedyToken(logits);
  order.resize(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<std::int32_t>(i);
  auto better = [&](std::int32_t a, std::int32_t b) {
    float x = orLowest(logits[static_cast<std::size_t>(a)]);
    float y = orLowest(logits[static_cast<std::size_t>(b)]);
    return x != y ? x > y : a < b;
  };
  std::size_t kept = logits.size();
  if (options.topK > 0 && static_cast<std::uint64_t>(options.topK) < kept)
    kept = static_cast<std::size_t>(options.topK);
  // The whole order is needed for top-p only; its head for top-k.
  if (kept < order.size())
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                      better);
  else if (options.topP < 1)
    std::sort(order.begin(), order.end(), better);
  order.resize(kept);

  float highest = orLowest(logits[static_cast<std::size_t>(greedyToken(logits))]);
  if (std::isinf(highest)) // all -inf, or a +inf that takes all
    return greedyToken(logits);
  weights.resize(kept);
  double sum = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    double distance = static_cast<double>(orLowest(logits[static_cast<std::size_t>(order[i])])) -
                      static_cast<double>(highest);
    weights[i] = std::exp(distance / options.temperature);
    sum += weights[i];
  }
  if (options.topP < 1) {
    double target = sum * options.topP, reached = 0;
    std::size_t last = 0;
    while (last < kept && reached < target)
      reached += weights[last++];
    kept = std::max<std::size_t>(last, 1);
    sum = reached;
  }
  double point = uniform() * sum;
  for (std::size_t i = 0; i < kept; ++i) {
    point -= weights[i];
    if (point < 0)
      return order[i];
  }
  // Rounding can leave a rest; the last token with any weight takes it.
  std::size_t last = kept - 1;
  while (last > 0 && weights[last] == 0)
    --last;
  return order[last];
}

} // namespace moert
