// Attention over rows that hold keys and values, and over listed positions, on both targets,
// against double precision; its bits against themselves in other company.

#include "AttentionReference.h"

#include "gtest/gtest.h"

using namespace moec_test;

namespace {

struct SparseCase {
  const char *name;
  bool isCUDA = false;
  std::function<void(AttentionCase &)> change;

  AttentionCase getShape() const {
    AttentionCase shape;
    shape.heads = 6;
    shape.kvHeads = 1;
    shape.keyDim = 80;
    shape.valueDim = 64;
    shape.shared = true;
    shape.strategy = isCUDA ? "cuda.attention.warps" : "cpu.attention.rows";
    change(shape);
    return shape;
  }
  StrategyKernel compile() const {
    AttentionCase shape = getShape();
    return StrategyKernel([shape](std::string tokens) { return shape.getAttentionText(tokens); },
                          isCUDA ? "cuda:sm_80" : "cpu");
  }
};

void PrintTo(const SparseCase &named, std::ostream *stream) { *stream << named.name; }

std::vector<SparseCase> makeCases() {
  const std::pair<const char *, std::function<void(AttentionCase &)>> changes[] = {
      {"Latent", [](auto &) {}},
      {"LatentIndices", [](auto &c) { c.indexWidth = 24; }},
      {"OneIndex", [](auto &c) { c.indexWidth = 1; }},
      {"MoreIndicesThanPositions", [](auto &c) { c.indexWidth = 200; }},
      {"ValueIsTheKey", [](auto &c) { c.valueDim = c.keyDim = 64; }},
      {"OddSizes",
       [](auto &c) {
         c.keyDim = 37;
         c.valueDim = 19;
         c.heads = 7;
         c.block = 20;
       }},
      {"ManyHeads",
       [](auto &c) {
         c.heads = 20; // of two workgroups on a CPU
         c.indexWidth = 9;
       }},
      {"DeepSeek",
       [](auto &c) {
         c.keyDim = 576;
         c.valueDim = 512;
         c.heads = 4;
         c.scale = 0.04;
         c.cacheType = c.queryType = "bf16";
       }},
      {"WindowSinksSoftcap",
       [](auto &c) {
         c.window = 21;
         c.sinks = true;
         c.softcap = 2.5;
         c.indexWidth = 40;
       }},
      {"Rotary",
       [](auto &c) {
         RotaryCase rotary;
         rotary.frequencies = {1, 0.5, 0.125};
         rotary.offset = 64;
         rotary.interleaved = true;
         c.rotary = {rotary};
       }},
      {"SharedOfTwoHeads", [](auto &c) { c.kvHeads = 2; }},
      {"SplitWithIndices",
       [](auto &c) {
         c.shared = false;
         c.kvHeads = 2;
         c.indexWidth = 24;
         c.valueDim = 24;
       }},
      {"SplitHalfPrecision",
       [](auto &c) {
         c.shared = false;
         c.kvHeads = 3;
         c.indexWidth = 8;
         c.keyDim = c.valueDim = 64;
         c.cacheType = c.queryType = "f16";
       }},
  };
  std::vector<SparseCase> cases;
  for (bool isCUDA : {false, true})
    for (auto &[name, change] : changes)
      cases.push_back({name, isCUDA, change});
  return cases;
}

class SparseAttention : public testing::TestWithParam<SparseCase> {};

TEST_P(SparseAttention, MatchesDoublePrecision) {
  StrategyKernel kernel = GetParam().compile();
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  // A block of a GPU takes its time here.
  std::vector<std::vector<SequenceCase>> steps = {{{1, 1}}, {{57, 1, 4}, {5, 2, 3}, {33, 1, 5}}};
  if (!GetParam().isCUDA) {
    steps.push_back({{40, 40}});
    steps.push_back({{100, 7, 2}, {5, 5, 3}, {57, 1, 4}, {33, 3, 5}, {16, 2, 6}});
  }
  for (const std::vector<SequenceCase> &sequences : steps) {
    AttentionStep step(GetParam().getShape(), sequences);
    EXPECT_LE(step.compare(step.run(kernel)), 1) << "step of " << step.getTokens() << " tokens";
  }
}

TEST_P(SparseAttention, BatchAndChunksKeepBits) {
  AttentionCase shape = GetParam().getShape();
  StrategyKernel kernel = GetParam().compile();
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  const int64_t length = GetParam().isCUDA ? 8 : 45, piece = GetParam().isCUDA ? 3 : 7;
  AttentionStep whole(shape, {{length, length, 9}});
  std::vector<std::byte> expected = whole.getRows(whole.run(kernel), 0), rows;
  for (int64_t begin = 0; begin < length; begin += piece) {
    int64_t end = std::min(begin + piece, length);
    AttentionStep step(shape, {{33, 1, 2}, {end, end - begin, 9}, {7, 1, 4}}, begin);
    std::vector<std::byte> part = step.getRows(step.run(kernel), 1);
    rows.insert(rows.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(rows == expected);
}

/// A token without a position, a sequence that is not there, a sequence without blocks.
TEST_P(SparseAttention, RowsThatSeeNothingAreZero) {
  AttentionCase shape = GetParam().getShape();
  StrategyKernel kernel = GetParam().compile();
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  AttentionStep step(shape, {{20, 3}, {30, 3}, {40, 3}});
  step.positions[1] = -1;
  step.tokenSequences[3] = step.tokenSequences[4] = step.tokenSequences[5] = 3;
  for (int64_t i = 0; i < step.tableBlocks; ++i)
    step.blockTable[2 * step.tableBlocks + i] = i % 2 ? -1 : step.poolBlocks;
  TestBuffer result = step.run(kernel);
  int64_t elements = shape.heads * shape.valueDim;
  for (int64_t token : {1, 3, 4, 5, 6, 7, 8})
    for (int64_t i = 0; i < elements; ++i)
      ASSERT_EQ(result.get(token * elements + i), 0) << "token " << token;
}

/// A number that is no number reaches the tokens that see its position and no others.
TEST_P(SparseAttention, WhatIsNotSeenMayBeAnything) {
  AttentionCase shape = GetParam().getShape();
  StrategyKernel kernel = GetParam().compile();
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  const std::vector<SequenceCase> sequences = {{37, 3, 2}, {50, 2, 3}};
  AttentionStep clean(shape, sequences);
  TestBuffer expected = clean.run(kernel);
  int64_t elements = shape.heads * shape.valueDim;
  for (auto [sequence, position] : {std::pair(0, 35), {1, 36}, {1, 49}}) {
    AttentionStep step(shape, sequences);
    step.setToken(sequence, position, NAN, NAN);
    TestBuffer result = step.run(kernel);
    for (int64_t token = 0; token < step.getTokens(); ++token)
      for (int64_t i = token * elements; i < (token + 1) * elements; ++i) {
        if (step.sees(token, sequence, position))
          ASSERT_TRUE(std::isnan(result.get(i))) << "token " << token;
        else
          ASSERT_EQ(result.get(i), expected.get(i)) << "token " << token;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SparseAttention, testing::ValuesIn(makeCases()),
                         [](const auto &info) {
                           return std::string(info.param.name) +
                                  (info.param.isCUDA ? "OnGPU" : "OnCPU");
                         });

} // namespace
