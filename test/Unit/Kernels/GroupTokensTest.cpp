// The strategies around the experts: sorting pairs by expert, and the weighted sum of results.

#include "StrategyKernel.h"
#include "TestBuffer.h"

#include "gtest/gtest.h"

using namespace moec_test;

namespace {

std::string getGroupText(std::string tokens, int64_t experts, int64_t choices) {
  std::string pairs = tokens == "?" ? "?" : std::to_string(std::stoll(tokens) * choices);
  KernelText text;
  text.inputs = {tensorArgument(tokens + "x" + std::to_string(choices) + "xi32")};
  text.outputs = {tensorArgument(std::to_string(experts + 1) + "xi32"),
                  tensorArgument(pairs + "xi32")};
  text.op =
      "%r0, %r1 = moe.group_tokens %0 {strategy = \"cpu.group_tokens\"} : " + text.inputs[0].value +
      " -> " + text.outputs[0].value + ", " + text.outputs[1].value;
  return text.print();
}

void checkGroups(const StrategyKernel &kernel, int64_t experts, int64_t choices,
                 std::vector<int32_t> indices) {
  int64_t pairCount = indices.size(), tokens = pairCount / choices;
  std::vector<int32_t> offsets(experts + 1, -7), pairs(pairCount, -7);
  ASSERT_TRUE(kernel.run(
      tokens, {{indices.data(), {tokens}}, {offsets.data()}, {pairs.data(), {pairCount}}}));
  std::vector<int32_t> expectedOffsets = {0}, expectedPairs;
  for (int32_t e = 0; e < experts; ++e) {
    for (int32_t p = 0; p < pairCount; ++p)
      if (indices[p] == e)
        expectedPairs.push_back(p);
    expectedOffsets.push_back(expectedPairs.size());
  }
  pairs.resize(expectedPairs.size());
  EXPECT_EQ(offsets, expectedOffsets);
  EXPECT_EQ(pairs, expectedPairs);
}

TEST(GroupTokens, SortsStablyByExpert) {
  std::mt19937 generator(1);
  for (auto [experts, choices] :
       {std::pair(32, 4), std::pair(5, 2), std::pair(1, 1), std::pair(1024, 16), std::pair(40, 6),
        std::pair(50, 18), std::pair(130, 33)}) {
    StrategyKernel kernel(
        [=](std::string tokens) { return getGroupText(tokens, experts, choices); });
    ASSERT_TRUE(kernel.isReady()) << kernel.getError();
    for (int64_t tokens : {0, 1, 3, 17, 300}) {
      std::vector<int32_t> indices(tokens * choices);
      for (int32_t &expert : indices)
        expert = generator() % experts;
      checkGroups(kernel, experts, choices, indices);
    }
  }
}

TEST(GroupTokens, LeavesOutInvalidExperts) {
  StrategyKernel kernel([](std::string tokens) { return getGroupText(tokens, 6, 3); });
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  checkGroups(kernel, 6, 3, {-1, 5, 6, 0, INT32_MIN, INT32_MAX, 5, 5, -1, 2, 0, 1});
  checkGroups(kernel, 6, 3, {-1, -1, -1});
}

struct CombineCase {
  int64_t columns, choices;
  bool residual;
  std::string inputType = "f32", resultType = "f32";

  std::string getText(std::string tokens) const {
    std::string rows = tokens == "?" ? "?" : std::to_string(std::stoll(tokens) * choices);
    std::string h = "x" + std::to_string(columns) + "x", k = "x" + std::to_string(choices) + "x";
    KernelText text;
    text.inputs = {tensorArgument(rows + h + inputType), tensorArgument(tokens + k + "f32"),
                   tensorArgument(tokens + k + "i32")};
    if (residual)
      text.inputs.push_back(tensorArgument(tokens + h + resultType));
    text.outputs = {tensorArgument(tokens + h + resultType)};
    text.op = "%r0 = moe.combine %0, %1, %2 " +
              (residual ? "residual(%3 : " + text.inputs[3].value + ") " : std::string()) +
              "{strategy = \"cpu.combine\"} : " + text.inputs[0].value + ", " +
              text.inputs[1].value + ", " + text.inputs[2].value + " -> " + text.outputs[0].value;
    return text.print();
  }
};

class CombineSweep : public testing::TestWithParam<CombineCase> {};

TEST_P(CombineSweep, MatchesDoublePrecision) {
  CombineCase shape = GetParam();
  StrategyKernel kernel([shape](std::string tokens) { return shape.getText(tokens); });
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  std::mt19937 generator(2);
  int64_t h = shape.columns, k = shape.choices;
  for (int64_t tokens : {1, 2, 5, 40}) {
    TestBuffer input(shape.inputType, tokens * k * h), weights("f32", tokens * k);
    TestBuffer residual(shape.resultType, tokens * h), result(shape.resultType, tokens * h);
    std::vector<int32_t> indices(tokens * k);
    weights.fillRandom(generator);
    residual.fillRandom(generator);
    std::normal_distribution<double> normal;
    for (int64_t row = 0; row < tokens * k; ++row) {
      indices[row] = generator() % 4 ? generator() % 30 : -1;
      // Rows of absent experts stay NaN.
      for (int64_t i = 0; indices[row] >= 0 && i < h; ++i)
        input.set(row * h + i, normal(generator));
    }
    std::vector<Binding> bindings = {
        {input.data(), {tokens * k}}, {weights.data(), {tokens}}, {indices.data(), {tokens}}};
    if (shape.residual)
      bindings.push_back({residual.data(), {tokens}});
    bindings.push_back({result.data(), {tokens}});
    ASSERT_TRUE(kernel.run(tokens, bindings));
    for (int64_t t = 0; t < tokens; ++t)
      for (int64_t i = 0; i < h; ++i) {
        double sum = shape.residual ? residual.get(t * h + i) : 0, size = std::abs(sum);
        for (int64_t j = 0; j < k; ++j)
          if (indices[t * k + j] >= 0) {
            double product = weights.get(t * k + j) * input.get((t * k + j) * h + i);
            sum += product;
            size += std::abs(product);
          }
        double allowed = 1e-6 * size + result.getEpsilon() * std::abs(sum);
        ASSERT_LE(std::abs(result.get(t * h + i) - sum), allowed)
            << "token " << t << " column " << i;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CombineSweep,
                         testing::Values(CombineCase{256, 4, true}, CombineCase{2880, 4, true},
                                         CombineCase{2880, 4, false, "bf16", "bf16"},
                                         CombineCase{7168, 16, true, "bf16", "bf16"},
                                         CombineCase{7168, 2, true, "f32", "bf16"},
                                         CombineCase{37, 2, true}, CombineCase{64, 6, true},
                                         CombineCase{100, 18, false},
                                         CombineCase{48, 33, true, "bf16", "bf16"},
                                         CombineCase{1, 1, false}, CombineCase{2049, 3, true}));

} // namespace
