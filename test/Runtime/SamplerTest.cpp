#include "runtime/session/Sampler.h"

#include "test/Runtime/Support.h"

#include <cmath>
#include <limits>

using namespace moert;
using namespace moert::test;

namespace {

std::vector<double> draw(const SamplingOptions &options, int count) {
  auto sampler = Sampler::create(options);
  EXPECT_TRUE(isOk(sampler));
  std::vector<double> numbers;
  for (int i = 0; i < count; ++i)
    numbers.push_back(sampler->next(0).random);
  return numbers;
}

constexpr double notANumber = std::numeric_limits<double>::quiet_NaN();

} // namespace

TEST(Sampler, SaysHowToChoose) {
  auto sampler = Sampler::create({.temperature = 0.5, .topK = 7, .topP = 0.25, .seed = 3});
  ASSERT_TRUE(isOk(sampler));
  TokenChoice choice = sampler->next(4);
  EXPECT_EQ(choice.row, 4u);
  EXPECT_EQ(choice.temperature, 0.5f);
  EXPECT_EQ(choice.topK, 7);
  EXPECT_EQ(choice.topP, 0.25);
  EXPECT_EQ(Sampler::create({.topK = INT64_MAX})->next(0).topK, INT32_MAX);
  EXPECT_TRUE(std::isfinite(Sampler::create({.temperature = 1e300})->next(0).temperature));
}

// Texts depend on these numbers: they may never change.
TEST(Sampler, NumbersAreThoseOfSplitmix64) {
  std::vector<double> expected;
  const std::uint64_t published[] = {0x599ed017fb08fc85, 0x2c73f08458540fa5, 0x883ebce5a3f27c77};
  for (std::uint64_t bits : published)
    expected.push_back(static_cast<double>(bits >> 11) * 0x1p-53);
  EXPECT_EQ(draw({.temperature = 1, .seed = 1234567}, 3), expected);
}

TEST(Sampler, NumbersAreEven) {
  std::vector<double> numbers = draw({.temperature = 1, .seed = 1}, 20000);
  double sum = 0, squares = 0;
  for (double number : numbers) {
    EXPECT_TRUE(number >= 0 && number < 1);
    sum += number;
    squares += number * number;
  }
  EXPECT_NEAR(sum / 20000, 1.0 / 2, 0.01);
  EXPECT_NEAR(squares / 20000, 1.0 / 3, 0.01);
}

TEST(Sampler, SeedsRepeat) {
  EXPECT_EQ(draw({.temperature = 1, .seed = 7}, 50), draw({.temperature = 1, .seed = 7}, 50));
  EXPECT_NE(draw({.temperature = 1, .seed = 7}, 50), draw({.temperature = 1, .seed = 8}, 50));
}

TEST(Sampler, GreedyChoicesTakeNoNumbers) {
  EXPECT_EQ(draw({.temperature = 0, .seed = 9}, 3), std::vector<double>(3, 0));
  EXPECT_EQ(draw({.temperature = 2, .topK = 1, .seed = 9}, 3), std::vector<double>(3, 0));
}

TEST(Sampler, RefusesNonsense) {
  EXPECT_TRUE(fails(Sampler::create({.temperature = -1, .topK = -2, .topP = 0}).status(),
                    ErrorCode::InvalidArgument, "3 problems"));
  EXPECT_FALSE(Sampler::create({.temperature = notANumber}).isOk());
  EXPECT_FALSE(Sampler::create({.topP = 1.5}).isOk());
  EXPECT_FALSE(Sampler::create({.topP = notANumber}).isOk());
}
