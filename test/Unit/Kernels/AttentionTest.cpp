// The attention strategy against double precision, and its bits against themselves in other
// company.

#include "AttentionReference.h"

#include "gtest/gtest.h"

using namespace moec_test;

namespace {

StrategyKernel compileAttention(const AttentionCase &shape, std::string target = "cpu",
                                HarnessOptions options = {}) {
  return StrategyKernel([shape](std::string tokens) { return shape.getAttentionText(tokens); },
                        target, options);
}

RotaryCase makeRotary(int64_t pairs, int64_t offset = 0, bool interleaved = false) {
  RotaryCase rotary;
  for (int64_t i = 0; i < pairs; ++i)
    rotary.frequencies.push_back(std::pow(150000.0, -double(i) / pairs));
  rotary.magnitude = 1.3465735902799727;
  rotary.offset = offset;
  rotary.interleaved = interleaved;
  return rotary;
}

const std::vector<SequenceCase> raggedSteps[] = {
    {{1, 1}},
    {{40, 40}},
    {{130, 130}},
    {{17, 1, 2}, {300, 1, 3}, {64, 1, 4}, {65, 1, 5}, {15, 1, 6}},
    {{100, 37, 2}, {5, 5, 3}, {257, 1, 4}, {33, 16, 5}, {16, 3, 6}},
};

struct NamedCase {
  const char *name;
  AttentionCase shape;
};

/// GoogleTest would print bytes otherwise.
void PrintTo(const NamedCase &named, std::ostream *stream) { *stream << named.name; }

class AttentionSweep : public testing::TestWithParam<NamedCase> {};

TEST_P(AttentionSweep, MatchesDoublePrecision) {
  AttentionCase shape = GetParam().shape;
  StrategyKernel kernel = compileAttention(shape);
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  for (const std::vector<SequenceCase> &sequences : raggedSteps) {
    AttentionStep step(shape, sequences);
    EXPECT_LE(step.compare(step.run(kernel)), 1) << "step of " << step.getTokens() << " tokens";
  }
}

AttentionCase with(std::function<void(AttentionCase &)> change) {
  AttentionCase shape;
  change(shape);
  return shape;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, AttentionSweep,
    testing::Values(NamedCase{"Plain", with([](auto &c) {})},
                    NamedCase{"Heads4Of4", with([](auto &c) {
                                c.heads = c.kvHeads = 4;
                                c.keyDim = c.valueDim = 32;
                              })},
                    NamedCase{"Heads64Of8", with([](auto &c) {
                                c.heads = 64;
                                c.kvHeads = 8;
                                c.sinks = true;
                                c.window = 128;
                              })},
                    NamedCase{"Heads7Of1", with([](auto &c) {
                                c.heads = 7;
                                c.kvHeads = 1;
                              })},
                    NamedCase{"Heads40Of1", with([](auto &c) {
                                c.heads = 40;
                                c.kvHeads = 1;
                                c.keyDim = 48;
                                c.valueDim = 32;
                              })},
                    NamedCase{"Dim128", with([](auto &c) {
                                c.keyDim = c.valueDim = 128;
                                c.scale = 0.0883883476;
                              })},
                    NamedCase{"Dim8Of3Heads", with([](auto &c) {
                                c.keyDim = c.valueDim = 8;
                                c.window = 5;
                                c.sinks = true;
                              })},
                    NamedCase{"OddDims", with([](auto &c) {
                                c.keyDim = 19;
                                c.valueDim = 21;
                              })},
                    NamedCase{"Latent", with([](auto &c) {
                                c.heads = 5;
                                c.kvHeads = 1;
                                c.keyDim = 576;
                                c.valueDim = 512;
                                c.scale = 0.04;
                              })},
                    NamedCase{"Window1", with([](auto &c) { c.window = 1; })},
                    NamedCase{"Window16", with([](auto &c) { c.window = 16; })},
                    NamedCase{"Window70", with([](auto &c) { c.window = 70; })},
                    NamedCase{"WindowBeyondContext", with([](auto &c) { c.window = 1000; })},
                    NamedCase{"Sinks", with([](auto &c) { c.sinks = true; })},
                    NamedCase{"Softcap", with([](auto &c) {
                                c.softcap = 2.5;
                                c.scale = 0.5;
                              })},
                    NamedCase{"Block4", with([](auto &c) {
                                c.block = 4;
                                c.window = 21;
                              })},
                    NamedCase{"Block64", with([](auto &c) {
                                c.block = 64;
                                c.window = 33;
                              })},
                    NamedCase{"Rotary", with([](auto &c) { c.rotary = {makeRotary(32)}; })},
                    NamedCase{"RotaryInterleaved",
                              with([](auto &c) { c.rotary = {makeRotary(11, 5, true)}; })},
                    NamedCase{"BFloat16", with([](auto &c) {
                                c.cacheType = c.queryType = "bf16";
                                c.sinks = true;
                                c.window = 90;
                              })},
                    NamedCase{"Float16", with([](auto &c) { c.cacheType = c.queryType = "f16"; })},
                    NamedCase{"BFloat16CacheOnly", with([](auto &c) { c.cacheType = "bf16"; })}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(Attention, OtherVectorWidths) {
  AttentionCase shape;
  shape.cacheType = shape.queryType = "bf16";
  shape.sinks = true;
  shape.window = 90;
  shape.rotary = {makeRotary(32)};
  for (const char *target : {"cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:sapphirerapids"}) {
    // Code for this machine of what the strategy builds for that one.
    StrategyKernel kernel = compileAttention(shape, target, {.emulate = true});
    ASSERT_TRUE(kernel.isReady()) << kernel.getError();
    AttentionStep step(shape, {{100, 37, 2}, {5, 5, 3}, {257, 1, 4}});
    EXPECT_LE(step.compare(step.run(kernel)), 1) << target;
  }
}

TEST(Attention, EveryLengthAcrossBlockBorders) {
  for (int64_t window : {0, 40}) {
    AttentionCase shape;
    shape.keyDim = shape.valueDim = 32;
    shape.window = window;
    StrategyKernel kernel = compileAttention(shape);
    ASSERT_TRUE(kernel.isReady()) << kernel.getError();
    for (int64_t context = 1; context <= 300; ++context) {
      AttentionStep step(shape, {{context, 1}}, context);
      EXPECT_LE(step.compare(step.run(kernel)), 1) << "context " << context;
    }
  }
}

TEST(Attention, BatchAndChunksKeepBits) {
  for (AttentionCase shape : {with([](auto &c) {
                                c.sinks = true;
                                c.window = 50;
                              }),
                              with([](auto &c) {
                                c.heads = c.kvHeads = 4;
                                c.keyDim = c.valueDim = 32;
                              }),
                              with([](auto &c) {
                                c.heads = 16;
                                c.cacheType = c.queryType = "bf16";
                                c.rotary = {makeRotary(32)};
                              })}) {
    StrategyKernel kernel = compileAttention(shape);
    ASSERT_TRUE(kernel.isReady()) << kernel.getError();
    const int64_t length = 150;
    AttentionStep whole(shape, {{length, length, 9}});
    std::vector<std::byte> expected = whole.getRows(whole.run(kernel), 0);

    for (int64_t chunk : {1, 7, 16, 37}) {
      std::vector<std::byte> rows;
      for (int64_t begin = 0; begin < length; begin += chunk) {
        int64_t end = std::min(begin + chunk, length);
        AttentionStep step(shape, {{end, end - begin, 9}}, begin);
        std::vector<std::byte> part = step.getRows(step.run(kernel), 0);
        rows.insert(rows.end(), part.begin(), part.end());
      }
      EXPECT_TRUE(rows == expected) << "chunks of " << chunk;
    }
    AttentionStep batch(shape, {{33, 3, 2}, {length, length, 9}, {90, 1, 3}, {7, 7, 4}});
    EXPECT_TRUE(batch.getRows(batch.run(kernel), 1) == expected);
  }
}

/// A number that is no number reaches the tokens that see its position and no others: not those
/// before it in the same block of rows, not those whose window it has left, no other sequence.
TEST(Attention, WhatIsNotSeenMayBeAnything) {
  const std::vector<SequenceCase> sequences = {{37, 37, 2}, {5, 1, 3}, {70, 11, 4}};
  const std::pair<int64_t, int64_t> places[] = {{0, 0},  {0, 1},  {0, 7},  {0, 15}, {0, 30},
                                                {0, 36}, {2, 40}, {2, 58}, {2, 60}, {2, 69}};
  for (int64_t group : {1, 2, 3, 5, 8})
    for (int64_t window : {0, 6})
      for (const char *target : {"cpu:x86-64-v3", "cpu:x86-64-v4"}) {
        AttentionCase shape;
        shape.heads = shape.kvHeads * group;
        shape.keyDim = shape.valueDim = 24;
        shape.window = window;
        SCOPED_TRACE("group " + std::to_string(group) + " window " + std::to_string(window) + " " +
                     target);
        StrategyKernel kernel = compileAttention(shape, target, {.emulate = true});
        ASSERT_TRUE(kernel.isReady()) << kernel.getError();
        AttentionStep clean(shape, sequences);
        TestBuffer expected = clean.run(kernel);
        int64_t rowElements = shape.heads * shape.valueDim;
        for (auto [sequence, position] : places)
          for (double bad : {double(INFINITY), double(NAN)}) {
            AttentionStep step(shape, sequences);
            // An infinite key would hide itself behind a softmax of minus infinity.
            step.setToken(sequence, position, std::isnan(bad) ? bad : 0.5, bad);
            TestBuffer result = step.run(kernel);
            for (int64_t token = 0; token < step.getTokens(); ++token)
              for (int64_t i = token * rowElements; i < (token + 1) * rowElements; ++i) {
                if (step.sees(token, sequence, position))
                  ASSERT_FALSE(std::isfinite(result.get(i))) << "token " << token;
                else
                  ASSERT_EQ(result.get(i), expected.get(i)) << "token " << token;
              }
          }
      }
}

TEST(Attention, RowsThatSeeNothingAreZero) {
  for (bool sinks : {false, true}) {
    AttentionCase shape;
    shape.sinks = sinks;
    StrategyKernel kernel = compileAttention(shape);
    ASSERT_TRUE(kernel.isReady()) << kernel.getError();
    AttentionStep step(shape, {{20, 3}, {30, 3}, {40, 3}});
    // A token without a position, a sequence that is not there, a sequence without blocks.
    step.positions[1] = -1;
    step.tokenSequences[3] = step.tokenSequences[4] = step.tokenSequences[5] = 3;
    for (int64_t i = 0; i < step.tableBlocks; ++i)
      step.blockTable[2 * step.tableBlocks + i] = i % 2 ? -1 : step.poolBlocks;
    TestBuffer result = step.run(kernel);
    int64_t elements = shape.heads * shape.valueDim;
    for (int64_t token : {1, 3, 4, 5, 6, 7, 8})
      for (int64_t i = 0; i < elements; ++i)
        ASSERT_EQ(result.get(token * elements + i), 0) << "token " << token;
    EXPECT_NE(result.get(0), 0);
    EXPECT_FALSE(std::isnan(result.get(2 * elements)));
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  AttentionCase shape;
  shape.scale = 1000;
  StrategyKernel kernel = compileAttention(shape);
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  AttentionStep step(shape, {{100, 9}});
  TestBuffer result = step.run(kernel);
  for (int64_t i = 0; i < result.size(); ++i)
    ASSERT_TRUE(std::isfinite(result.get(i)));
}

} // namespace
