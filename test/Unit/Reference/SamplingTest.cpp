// sampleToken: frequencies, and rows that hold what is no number.

#include "moec/Dialect/MoE/Reference/Sampling.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace mlir::moec::moe;

namespace {

constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

std::vector<int32_t> draw(SampleOptions options, std::vector<float> logits, int count) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> uniform;
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i) {
    options.random = uniform(random);
    tokens.push_back(sampleToken(logits, options));
  }
  return tokens;
}

/// How often each of the tokens came up.
std::vector<double> shares(const SampleOptions &options, const std::vector<float> &logits) {
  constexpr int count = 20000;
  std::vector<double> result(logits.size(), 0);
  for (int32_t token : draw(options, logits, count))
    result[token] += 1.0 / count;
  return result;
}

TEST(SampleToken, GreedyTiesGoToTheLowestId) {
  std::vector<float> logits = {1, 3, 2, 3};
  EXPECT_EQ(sampleToken(logits, {}), 1);
  EXPECT_EQ(sampleToken({notANumber, -infinite, -5, notANumber, -5}, {}), 2);
  EXPECT_EQ(sampleToken({notANumber, notANumber}, {}), 0);
  EXPECT_EQ(sampleToken({-0.0f, 0.0f}, {}), 0);
  EXPECT_EQ(draw({.temperature = 2, .topK = 1}, logits, 3), (std::vector<int32_t>{1, 1, 1}));
  EXPECT_EQ(draw({.temperature = notANumber}, logits, 3), (std::vector<int32_t>{1, 1, 1}));
}

TEST(SampleToken, FrequenciesFollowTheProbabilities) {
  std::vector<float> logits = {std::log(0.1f), std::log(0.2f), std::log(0.3f), std::log(0.4f)};
  std::vector<double> all = shares({.temperature = 1}, logits);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(all[i], 0.1 * (i + 1), 0.015);
  std::vector<double> top2 = shares({.temperature = 1, .topK = 2}, logits);
  EXPECT_EQ(top2[0] + top2[1], 0);
  EXPECT_NEAR(top2[3], 4.0 / 7, 0.015);
  // 0.4 alone does not reach 0.5; 0.4 + 0.3 does.
  std::vector<double> nucleus = shares({.temperature = 1, .topP = 0.5}, logits);
  EXPECT_EQ(nucleus[0] + nucleus[1], 0);
  EXPECT_NEAR(nucleus[3], 4.0 / 7, 0.015);
  std::vector<double> one = shares({.temperature = 1, .topP = 0.3}, logits);
  EXPECT_EQ(one[0] + one[1] + one[2], 0);
  std::vector<double> cold = shares({.temperature = 0.5}, logits);
  EXPECT_NEAR(cold[3], 16.0 / 30, 0.015);
}

TEST(SampleToken, OfTiesTheFirstStay) {
  std::vector<float> logits(10, 1);
  for (SampleOptions options :
       {SampleOptions{.temperature = 1, .topK = 3}, SampleOptions{.temperature = 1, .topP = 0.3}}) {
    std::vector<double> result = shares(options, logits);
    for (size_t i = 0; i < 10; ++i)
      EXPECT_NEAR(result[i], i < 3 ? 1.0 / 3 : 0, 0.015);
  }
}

TEST(SampleToken, OddLogitsAreSurvived) {
  EXPECT_EQ(draw({.temperature = 1}, {notANumber, infinite, -infinite, 1}, 5),
            std::vector<int32_t>(5, 1));
  EXPECT_EQ(draw({.temperature = 1}, {-infinite, -infinite, notANumber}, 2),
            std::vector<int32_t>(2, 0));
  for (int32_t token : draw({.temperature = 5, .topP = 0.999}, {notANumber, -infinite, 1, 1}, 100))
    EXPECT_GE(token, 2);
}

} // namespace
