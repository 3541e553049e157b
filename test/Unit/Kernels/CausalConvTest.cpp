// The strategy for causal convolutions against the reference interpreter.

#include "RecurrentKernel.h"

using namespace moec_test;

namespace {

RecurrentCase makeConv(int64_t channels, int64_t size, std::string type, std::string weightType,
                       bool silu) {
  RecurrentCase shape;
  std::string row = std::to_string(channels);
  std::string weight = row + "x" + std::to_string(size) + "x" + weightType;
  shape.operands = {{type, {channels}, drawNormal},
                    {weightType, {channels, size}, drawNormal, /*isWeight=*/true}};
  shape.result = {type, {channels}, {}};
  shape.stateType = type;
  shape.stateShape = {size - 1, channels};
  shape.op = "moe.causal_conv %0 weight(%1 : tensor<" + weight +
             ">) over %2 at (%3, %4, %5) {strategy = \"cpu.causal_conv\"" +
             (silu ? ", silu}" : "}");
  shape.types = "tensor<?x" + row + "x" + type + ">, ";
  shape.namesResult = false;
  return shape;
}

/// Single tokens, prompts, sequences that go on, and slots that others had before.
const std::vector<Step> steps = {
    {{0, 2, 0, 1}},
    {{0, 2, 1, 9}, {1, 0, 0, 2}},
    {{2, 3, 0, 17}, {1, 0, 2, 1}, {0, 2, 10, 1}, {3, 1, 0, 3}},
    {{3, 1, 3, 0}, {1, 0, 3, 2}},
    {{4, 2, 0, 1}, {3, 1, 3, 4}},
    {{4, 2, 1, 5}, {5, 3, 0, 2}},
};

class CausalConv : public testing::TestWithParam<const char *> {};

TEST_P(CausalConv, EqualsTheInterpreter) {
  if (!canRun(GetParam()))
    GTEST_SKIP() << "this machine cannot run " << GetParam();
  int number = 0;
  for (int64_t channels : {1, 16, 37, 300})
    for (int64_t size : {2, 4, 5})
      for (const char *type : {"f32", "bf16", "f16"}) {
        bool silu = ++number % 2;
        std::string weightType = number % 3 ? "f32" : type;
        RecurrentKernel kernel(makeConv(channels, size, type, weightType, silu), 4, GetParam());
        ASSERT_TRUE(kernel.isReady()) << kernel.getError();
        SCOPED_TRACE(std::to_string(channels) + " channels, " + std::to_string(size) + " taps, " +
                     type);
        for (const Step &step : steps)
          kernel.compare(step, 1e-6);
      }
}

INSTANTIATE_TEST_SUITE_P(Targets, CausalConv,
                         testing::Values("cpu", "cpu:x86-64", "cpu:x86-64-v3", "cuda:sm_80"),
                         getTargetName);

TEST(CausalConv, OneThreadOfAGPUTakesManyTaps) {
  RecurrentKernel kernel(makeConv(9, 17, "f32", "f32", true), 4, "cuda:sm_80", ".serial");
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  for (const Step &step : steps)
    kernel.compare(step, 1e-6);
}

TEST(CausalConv, PiecesGiveTheSameBits) {
  RecurrentCase shape = makeConv(37, 4, "bf16", "f32", true);
  RecurrentKernel whole(shape, 1);
  ASSERT_TRUE(whole.isReady()) << whole.getError();
  constexpr int tokens = 130;
  TestBuffer expected = whole.run({{0, 0, 0, tokens}});
  for (int piece : {1, 2, 3, 7, 16, 64, 66, 128}) {
    RecurrentKernel pieces(shape, 3);
    std::vector<std::byte> bytes;
    for (int first = 0; first < tokens; first += piece) {
      // Beside another sequence in the same step.
      int count = std::min(piece, tokens - first);
      TestBuffer part = pieces.run({{0, 1, first, count}, {7, 2, first, count}});
      bytes.insert(bytes.end(), part.getBytes().begin(),
                   part.getBytes().begin() + count * 37 * part.getWidth());
    }
    EXPECT_EQ(bytes, expected.getBytes()) << "in pieces of " << piece;
  }
}

class CausalConvTables : public testing::TestWithParam<const char *> {};

TEST_P(CausalConvTables, WriteNothingWhereTheyAreWrong) {
  RecurrentKernel kernel(makeConv(16, 4, "f32", "f32", false), 2, GetParam());
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  Step step = {{0, 0, 0, 2}, {1, 1, 0, 2}};
  for (auto [offsets, slots] :
       {std::pair<std::vector<int32_t>, std::vector<int32_t>>{{0, 2, 4}, {-1, 2}},
        {{0, 5, 9}, {0, 1}},
        {{2, 1, -1}, {0, 1}},
        {{-2, -1, 0}, {0, 1}}}) {
    kernel.forcedOffsets = offsets;
    kernel.forcedSlots = slots;
    TestBuffer result = kernel.run(step);
    for (const TestBuffer *buffer : {&result, &kernel.state})
      for (int64_t i = 0; i < buffer->size(); ++i)
        ASSERT_TRUE(std::isnan(buffer->get(i))) << "element " << i << " was written";
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CausalConvTables, testing::Values("cpu", "cuda:sm_80"),
                         getTargetName);

} // namespace
