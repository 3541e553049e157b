// The strategies that compress windows of tokens against the reference interpreter.

#include "RecurrentKernel.h"

using namespace moec_test;

namespace {

RecurrentCase makeCompress(int64_t channels, int64_t ratio, bool overlaps, std::string type,
                           std::string resultType) {
  RecurrentCase shape;
  int64_t width = overlaps ? 2 * channels : channels;
  std::string bias = std::to_string(ratio) + "x" + std::to_string(width) + "xf32";
  std::string row = "?x" + std::to_string(width) + "x";
  shape.operands = {{type, {width}, drawNormal},
                    {"f32", {width}, drawNormal},
                    {"f32", {ratio, width}, drawNormal, /*isWeight=*/true}};
  shape.result = {resultType, {channels}, {}};
  shape.stateType = "f32";
  shape.stateShape = {overlaps ? 6 : 3, channels};
  shape.op = "moe.compress %0 gates(%1 : tensor<" + row + "f32>) bias(%2 : tensor<" + bias +
             ">) over %3 at (%4, %5, %6) {strategy = \"cpu.compress\"}";
  shape.types = "tensor<" + row + type + ">, ";
  shape.namesResult = true;
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

class Compress : public testing::TestWithParam<const char *> {};

TEST_P(Compress, EqualsTheInterpreter) {
  if (!canRun(GetParam()))
    GTEST_SKIP() << "this machine cannot run " << GetParam();
  int number = 0;
  for (int64_t channels : {1, 37, 130})
    for (int64_t ratio : {1, 4, 8})
      for (bool overlaps : {false, true}) {
        const char *type = ++number % 2 ? "f32" : "bf16", *resultType = number % 3 ? type : "f32";
        RecurrentKernel kernel(makeCompress(channels, ratio, overlaps, type, resultType), 4,
                               GetParam());
        ASSERT_TRUE(kernel.isReady()) << kernel.getError();
        SCOPED_TRACE(std::to_string(channels) + " channels, windows of " + std::to_string(ratio) +
                     (overlaps ? ", overlapping, " : ", ") + type);
        for (const Step &step : steps)
          kernel.compare(step, 1e-6);
      }
}

INSTANTIATE_TEST_SUITE_P(Targets, Compress,
                         testing::Values("cpu", "cpu:x86-64", "cpu:x86-64-v3", "cuda:sm_80"),
                         getTargetName);

TEST(Compress, PiecesGiveTheSameBits) {
  RecurrentCase shape = makeCompress(37, 4, true, "f32", "f32");
  RecurrentKernel whole(shape, 1);
  ASSERT_TRUE(whole.isReady()) << whole.getError();
  TestBuffer expected = whole.run({{0, 0, 0, 100}});
  for (int piece : {1, 2, 3, 4, 7, 64}) {
    RecurrentKernel pieces(shape, 3);
    std::vector<std::byte> bytes;
    for (int first = 0; first < 100; first += piece) {
      // Beside another sequence in the same step.
      int count = std::min(piece, 100 - first);
      TestBuffer part = pieces.run({{0, 1, first, count}, {7, 2, first, count}});
      bytes.insert(bytes.end(), part.getBytes().begin(),
                   part.getBytes().begin() + count * 37 * part.getWidth());
    }
    EXPECT_EQ(bytes, expected.getBytes()) << "in pieces of " << piece;
  }
}

TEST(Compress, WrongTablesWriteNothing) {
  for (const char *target : {"cpu", "cuda:sm_80"}) {
    RecurrentKernel kernel(makeCompress(16, 4, true, "f32", "f32"), 2, target);
    ASSERT_TRUE(kernel.isReady()) << kernel.getError();
    for (auto [offsets, slots] :
         {std::pair<std::vector<int32_t>, std::vector<int32_t>>{{0, 2, 4}, {-1, 2}},
          {{0, 5, 9}, {0, 1}},
          {{2, 1, -1}, {0, 1}}}) {
      kernel.forcedOffsets = offsets;
      kernel.forcedSlots = slots;
      TestBuffer result = kernel.run({{0, 0, 0, 2}, {1, 1, 0, 2}});
      for (const TestBuffer *buffer : {&result, &kernel.state})
        for (int64_t i = 0; i < buffer->size(); ++i)
          ASSERT_TRUE(std::isnan(buffer->get(i))) << "element " << i << " was written";
    }
  }
}

} // namespace
