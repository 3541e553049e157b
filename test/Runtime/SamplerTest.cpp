#include "runtime/session/Sampler.h"

#include "test/Runtime/Support.h"

#include <cmath>
#include <limits>

using namespace moert;
using namespace moert::test;

namespace {

std::vector<std::int32_t> draw(const SamplingOptions &options, std::span<const float> logits,
                               int count) {
  auto sampler = Sampler::create(options);
  EXPECT_TRUE(isOk(sampler));
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < count; ++i)
    tokens.push_back(sampler->sample(logits));
  return tokens;
}

// How often each of the tokens came up.
std::vector<double> shares(const SamplingOptions &options, std::span<const float> logits) {
  constexpr int count = 20000;
  std::vector<double> result(logits.size(), 0);
  for (std::int32_t token : draw(options, logits, count))
    result[static_cast<std::size_t>(token)] += 1.0 / count;
  return result;
}

constexpr float notANumber = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

} // namespace

TEST(Sampler, GreedyTiesGoToTheLowestId) {
  const float logits[] = {1, 3, 2, 3};
  EXPECT_EQ(greedyToken(logits), 1);
  const float odd[] = {notANumber, -infinite, -5, notANumber, -5};
  EXPECT_EQ(greedyToken(odd), 2);
  const float none[] = {notANumber, notANumber};
  EXPECT_EQ(greedyToken(none), 0);
  EXPECT_EQ(draw({.temperature = 0, .seed = 9}, logits, 3), (std::vector<std::int32_t>{1, 1, 1}));
  EXPECT_EQ(draw({.temperature = 2, .topK = 1}, logits, 3), (std::vector<std::int32_t>{1, 1, 1}));
}

TEST(Sampler, FrequenciesFollowTheProbabilities) {
  const float logits[] = {std::log(0.1f), std::log(0.2f), std::log(0.3f), std::log(0.4f)};
  auto all = shares({.temperature = 1, .seed = 1}, logits);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(all[i], 0.1 * static_cast<double>(i + 1), 0.015);
  auto top2 = shares({.temperature = 1, .topK = 2, .seed = 2}, logits);
  EXPECT_EQ(top2[0] + top2[1], 0);
  EXPECT_NEAR(top2[3], 4.0 / 7, 0.015);
  // 0.4 alone does not reach 0.5; 0.4 + 0.3 does.
  auto nucleus = shares({.temperature = 1, .topP = 0.5, .seed = 3}, logits);
  EXPECT_EQ(nucleus[0] + nucleus[1], 0);
  EXPECT_NEAR(nucleus[3], 4.0 / 7, 0.015);
  auto one = shares({.temperature = 1, .topP = 0.3, .seed = 4}, logits);
  EXPECT_EQ(one[0] + one[1] + one[2], 0);
  auto cold = shares({.temperature = 0.5, .seed = 5}, logits);
  EXPECT_NEAR(cold[3], 16.0 / 30, 0.015);
}

TEST(Sampler, SeedsRepeat) {
  const float logits[] = {0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(draw({.temperature = 1, .seed = 7}, logits, 50),
            draw({.temperature = 1, .seed = 7}, logits, 50));
  EXPECT_NE(draw({.temperature = 1, .seed = 7}, logits, 50),
            draw({.temperature = 1, .seed = 8}, logits, 50));
}

TEST(Sampler, OddLogitsAreSurvived) {
  const float odd[] = {notANumber, infinite, -infinite, 1};
  EXPECT_EQ(draw({.temperature = 1}, odd, 5), (std::vector<std::int32_t>(5, 1)));
  const float nothing[] = {-infinite, -infinite, notANumber};
  EXPECT_EQ(draw({.temperature = 1}, nothing, 2), (std::vector<std::int32_t>(2, 0)));
  const float some[] = {notANumber, -infinite, 1, 1};
  for (std::int32_t token : draw({.temperature = 5, .topP = 0.999}, some, 100))
    EXPECT_GE(token, 2);
}

TEST(Sampler, RefusesNonsense) {
  EXPECT_TRUE(fails(Sampler::create({.temperature = -1, .topK = -2, .topP = 0}).status(),
                    ErrorCode::InvalidArgument, "3 problems"));
  EXPECT_FALSE(Sampler::create({.temperature = notANumber}).isOk());
  EXPECT_FALSE(Sampler::create({.topP = 1.5}).isOk());
  EXPECT_FALSE(Sampler::create({.topP = notANumber}).isOk());
}
