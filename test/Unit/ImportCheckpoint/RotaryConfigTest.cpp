#include "lib/Conversion/ImportCheckpoint/RotaryConfig.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace mlir::moec;

static RotaryConfig read(const std::string &config, std::string &problems, int64_t headDim = 64) {
  auto document = moert::parseJson(config, "config.json");
  EXPECT_TRUE(document.isOk());
  moert::Problems all("config.json");
  RotaryConfig result = readRotaryConfig(moert::JsonView(*document, all), headDim, 0);
  problems = all.toStatus(moert::ErrorCode::InvalidData).toString();
  return result;
}

TEST(RotaryConfig, YarnOfGptOssHasThePublishedRange) {
  YarnParameters yarn;
  yarn.theta = 150000;
  yarn.factor = 32;
  yarn.originalLength = 4096;
  yarn.truncate = false;
  std::vector<double> plain = plainFrequencies(150000, 64), scaled = yarnFrequencies(yarn, 64);
  ASSERT_EQ(scaled.size(), 32u);
  EXPECT_EQ(scaled[8], plain[8]);
  EXPECT_DOUBLE_EQ(scaled[18], plain[18] / 32);
  // The ramp is a line: from its values at two dimensions follow its ends.
  auto ramp = [&](int i) { return (1 - scaled[i] / plain[i]) / (1 - 1 / 32.0); };
  double slope = (ramp(17) - ramp(9)) / 8;
  EXPECT_NEAR(9 - ramp(9) / slope, 8.092779, 1e-6);
  EXPECT_NEAR(9 + (1 - ramp(9)) / slope, 17.398025, 1e-6);
  EXPECT_NEAR(yarnMagnitude(32), 1.346573590, 1e-9);
}

TEST(RotaryConfig, YarnOfDeepSeekRoundsTheRange) {
  YarnParameters yarn;
  yarn.theta = 10000;
  yarn.factor = 40;
  yarn.originalLength = 4096;
  std::vector<double> plain = plainFrequencies(10000, 64), scaled = yarnFrequencies(yarn, 64);
  EXPECT_EQ(scaled[10], plain[10]);
  EXPECT_LT(scaled[11], plain[11]);
  EXPECT_GT(scaled[22], plain[22] / 40 * 1.001);
  EXPECT_DOUBLE_EQ(scaled[23], plain[23] / 40);
}

TEST(RotaryConfig, BothSpellingsMeanTheSame) {
  std::string problems;
  RotaryConfig old = read(R"({"rope_theta": 150000, "max_position_embeddings": 131072,
      "rope_scaling": {"rope_type": "yarn", "factor": 32, "original_max_position_embeddings": 4096,
                       "beta_fast": 32, "beta_slow": 1, "truncate": false}})",
                          problems);
  EXPECT_EQ(problems, "ok");
  RotaryConfig now = read(R"({"max_position_embeddings": 131072,
      "rope_parameters": {"type": "yarn", "rope_theta": 150000, "factor": 32,
                          "original_max_position_embeddings": 4096, "truncate": false}})",
                          problems);
  EXPECT_EQ(problems, "ok");
  EXPECT_EQ(old.frequencies, now.frequencies);
  EXPECT_EQ(old.magnitude, now.magnitude);
  EXPECT_NEAR(old.magnitude, 1.346573590, 1e-9);
}

TEST(RotaryConfig, TruncateChangesFrequencies) {
  std::string problems;
  const char *text = R"({"rope_theta": 150000, "rope_scaling": {"rope_type": "yarn", "factor": 32,
      "original_max_position_embeddings": 4096, "truncate": )";
  RotaryConfig rounded = read(text + std::string("true}}"), problems);
  RotaryConfig exact = read(text + std::string("false}}"), problems);
  EXPECT_NE(rounded.frequencies, exact.frequencies);
}

TEST(RotaryConfig, AttentionFactorWins) {
  std::string problems;
  RotaryConfig config = read(R"({"rope_theta": 10000, "rope_scaling": {"rope_type": "yarn",
      "factor": 4, "original_max_position_embeddings": 64, "attention_factor": 1.25}})",
                             problems);
  EXPECT_EQ(problems, "ok");
  EXPECT_EQ(config.magnitude, 1.25);
}

TEST(RotaryConfig, ScalesOfDeepSeekDivide) {
  std::string problems;
  RotaryConfig config = read(R"({"rope_theta": 10000, "rope_scaling": {"rope_type": "yarn",
      "factor": 40, "original_max_position_embeddings": 4096, "mscale": 1.0, "mscale_all_dim": 2.0}})",
                             problems);
  EXPECT_DOUBLE_EQ(config.magnitude, (0.1 * std::log(40) + 1) / (0.2 * std::log(40) + 1));
}

TEST(RotaryConfig, PlainAndLinear) {
  std::string problems;
  RotaryConfig plain = read(R"({"rope_theta": 10000})", problems, 8);
  EXPECT_EQ(problems, "ok");
  ASSERT_EQ(plain.frequencies.size(), 4u);
  EXPECT_DOUBLE_EQ(plain.frequencies[1], 0.1);
  RotaryConfig linear = read(
      R"({"rope_theta": 10000, "rope_scaling": {"type": "linear", "factor": 4}})", problems, 8);
  EXPECT_EQ(problems, "ok");
  EXPECT_DOUBLE_EQ(linear.frequencies[1], 0.025);
  RotaryConfig partial =
      read(R"({"rope_theta": 10000, "partial_rotary_factor": 0.5})", problems, 8);
  EXPECT_EQ(partial.frequencies.size(), 2u);
}

TEST(RotaryConfig, BadValuesAreNamed) {
  std::string problems;
  read(R"({})", problems);
  EXPECT_NE(problems.find("rope_theta: is missing"), std::string::npos) << problems;
  read(R"({"rope_theta": 0.5})", problems);
  EXPECT_NE(problems.find("rope_theta: expected a number above 1"), std::string::npos) << problems;
  read(R"({"rope_theta": 10000, "rope_scaling": {"rope_type": "longrope"}})", problems);
  EXPECT_NE(problems.find("rope_scaling.rope_type: expected 'default', 'linear' or 'yarn'"),
            std::string::npos)
      << problems;
  read(R"({"rope_theta": 10000, "rope_parameters": {"full_attention": {"rope_type": "yarn"}}})",
       problems);
  EXPECT_NE(problems.find("rope_parameters.full_attention: rotary parameters that differ"),
            std::string::npos)
      << problems;
  read(R"({"rope_theta": 10000, "rope_scaling": {"rope_type": "yarn", "factor": -2,
           "original_max_position_embeddings": 0, "beta_fast": "x"}})",
       problems);
  for (const char *part : {"factor: expected", "original_max_position_embeddings: expected",
                           "beta_fast: expected a finite number"})
    EXPECT_NE(problems.find(part), std::string::npos) << part << " in " << problems;
  read(R"({"rope_theta": 10000, "partial_rotary_factor": 0.4})", problems, 8);
  EXPECT_NE(problems.find("an even number of at least 2 of the 8 dimensions"), std::string::npos)
      << problems;
}
