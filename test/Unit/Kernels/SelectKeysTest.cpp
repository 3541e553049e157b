// The choice of keys against a plain sort, on both targets. Scores are exact: keys and queries are
// small integers, or one product of one element.

#include "StrategyKernel.h"
#include "TestBuffer.h"

#include "llvm/ADT/STLExtras.h"

#include "gtest/gtest.h"

#include <numeric>

using namespace moec_test;

namespace {

struct SelectCase {
  int64_t heads = 3, dim = 8, topK = 5, block = 16;
  double scale = 0.5;
  std::string type = "f32";

  int64_t getBlockElements() const { return block * dim; }
  std::string getText(std::string tokens, bool isCUDA) const {
    auto number = [](int64_t value) { return std::to_string(value); };
    KernelText text;
    text.inputs = {tensorArgument(tokens + "x" + number(heads) + "x" + number(dim) + "x" + type),
                   tensorArgument(tokens + "x" + number(heads) + "xf32"),
                   {"memref<?x" + number(getBlockElements()) + "x" + type + ">",
                    "!moe.cache<kv_heads = 1, key_dim = " + number(dim) +
                        ", value_dim = 0, block = " + number(block) + ", " + type + ", shared>"},
                   tensorArgument(tokens + "xi32"),
                   tensorArgument(tokens + "xi32"),
                   tensorArgument("?x?xi32")};
    text.outputs = {tensorArgument(tokens + "x" + number(topK) + "xi32")};
    text.op =
        "%r0 = moe.select_keys %0 weights(%1) over %2 at (%3, %4, %5) {top_k = " + number(topK) +
        ", scale = " + std::to_string(scale) + ", strategy = \"" + (isCUDA ? "cuda" : "cpu") +
        ".select_keys\"} : ";
    for (int i = 0; i < 6; ++i)
      text.op += (i ? ", " : "") + text.inputs[i].value;
    text.op += " -> " + text.outputs[0].value;
    return text.print();
  }
};

/// Keys [context][dim] of a sequence whose last `queries` tokens are in the step.
struct Sequence {
  std::vector<double> keys;
  int64_t queries;
};

class SelectKeys : public testing::TestWithParam<const char *> {
protected:
  bool isCUDA() const { return std::string(GetParam()).starts_with("cuda"); }

  /// A block of a GPU takes its time here.
  int64_t tokens(int64_t count) const { return isCUDA() ? std::min<int64_t>(count, 6) : count; }

  void compile(SelectCase shape) {
    this->shape = shape;
    kernel = std::make_unique<StrategyKernel>(
        [shape, cuda = isCUDA()](std::string tokens) { return shape.getText(tokens, cuda); },
        GetParam());
    ASSERT_TRUE(kernel->isReady()) << kernel->getError();
  }

  std::vector<double> integers(int64_t count, int spread = 3) {
    std::uniform_int_distribution<int> pick(-spread, spread);
    std::vector<double> numbers(count);
    for (double &x : numbers)
      x = pick(random);
    return numbers;
  }
  std::vector<double> keys(int64_t context) { return integers(context * shape.dim); }

  std::vector<int32_t> expect(const Sequence &sequence, int64_t position, const TestBuffer &query,
                              const TestBuffer &weights, int64_t token) const {
    std::vector<float> scores;
    for (int64_t p = 0; p <= position; ++p) {
      double sum = 0;
      for (int64_t h = 0; h < shape.heads; ++h) {
        double product = 0;
        for (int64_t i = 0; i < shape.dim; ++i)
          product += query.get((token * shape.heads + h) * shape.dim + i) *
                     sequence.keys[p * shape.dim + i];
        sum += weights.get(token * shape.heads + h) * (product < 0 ? 0 : product);
      }
      float score = static_cast<float>(sum * shape.scale);
      scores.push_back(std::isnan(score) ? -INFINITY : score);
    }
    std::vector<int32_t> best(scores.size());
    std::iota(best.begin(), best.end(), 0);
    std::stable_sort(best.begin(), best.end(),
                     [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
    best.resize(std::min<size_t>(best.size(), shape.topK));
    std::sort(best.begin(), best.end());
    best.resize(shape.topK, -1);
    return best;
  }

  /// Lays the sequences down in shuffled blocks, NaN where none is, and compares every token's row.
  std::vector<int32_t> check(const std::vector<Sequence> &sequences, std::vector<double> queries,
                             std::vector<double> weightValues) {
    int64_t tableBlocks = 1, needed = 0, tokens = 0, count = sequences.size();
    std::vector<int32_t> positions, tokenSequences, table;
    for (auto [s, sequence] : llvm::enumerate(sequences)) {
      int64_t context = sequence.keys.size() / shape.dim;
      int64_t blocks = (context + shape.block - 1) / shape.block;
      tableBlocks = std::max(tableBlocks, blocks + 1);
      needed += blocks;
      tokens += sequence.queries;
      for (int64_t p = context - sequence.queries; p < context; ++p) {
        positions.push_back(p);
        tokenSequences.push_back(s);
      }
    }
    std::vector<int32_t> pool(needed + 2);
    std::iota(pool.begin(), pool.end(), 0);
    std::shuffle(pool.begin(), pool.end(), random);
    TestBuffer cache(shape.type, pool.size() * shape.getBlockElements());
    int64_t next = 0;
    for (const Sequence &sequence : sequences) {
      int64_t context = sequence.keys.size() / shape.dim;
      // Entries behind the end are nothing that may be relied on; some look like any other.
      const int32_t others[] = {-1, 1 << 30, pool[0]};
      for (int64_t b = 0; b < tableBlocks; ++b)
        table.push_back(b * shape.block < context ? pool[next++] : others[(b + next) % 3]);
      for (int64_t i = 0; i < int64_t(sequence.keys.size()); ++i) {
        int64_t p = i / shape.dim, block = table[table.size() - tableBlocks + p / shape.block];
        cache.set(block * shape.getBlockElements() + p % shape.block * shape.dim + i % shape.dim,
                  sequence.keys[i]);
      }
    }
    TestBuffer query(shape.type, tokens * shape.heads * shape.dim);
    TestBuffer weights("f32", tokens * shape.heads);
    for (int64_t i = 0; i < query.size(); ++i)
      query.set(i, queries[i % queries.size()]);
    for (int64_t i = 0; i < weights.size(); ++i)
      weights.set(i, weightValues[i % weightValues.size()]);

    std::vector<int32_t> result(tokens * shape.topK, -7);
    Unchanged unchanged{&query, &weights, &cache};
    EXPECT_TRUE(kernel->run(tokens, {{query.data(), {tokens}},
                                     {weights.data(), {tokens}},
                                     {cache.data(), {int64_t(pool.size())}},
                                     {positions.data(), {tokens}},
                                     {tokenSequences.data(), {tokens}},
                                     {table.data(), {count, tableBlocks}},
                                     {result.data(), {tokens}}}));
    for (int64_t t = 0; t < tokens; ++t) {
      std::vector<int32_t> row(result.begin() + t * shape.topK,
                               result.begin() + (t + 1) * shape.topK);
      EXPECT_EQ(row, expect(sequences[tokenSequences[t]], positions[t], query, weights, t))
          << "token " << t;
      if (HasFailure())
        break;
    }
    return result;
  }

  SelectCase shape;
  std::unique_ptr<StrategyKernel> kernel;
  std::mt19937 random{5};
};

TEST_P(SelectKeys, FewerKeysThanWantedAndMore) {
  compile({});
  for (int64_t context = 1; context <= 12; ++context)
    check({{keys(context), std::min(context, tokens(context))}},
          integers(7 * shape.heads * shape.dim), integers(41));
}

TEST_P(SelectKeys, SizesOfEveryKind) {
  for (SelectCase shape : {SelectCase{1, 1, 1}, SelectCase{4, 64, 16, 16, 0.5, "bf16"},
                           SelectCase{9, 128, 33, 64, 0.5, "f16"}, SelectCase{5, 19, 7, 4},
                           SelectCase{64, 128, 40, 16, 0.25, "bf16"}, SelectCase{2, 300, 3, 8}}) {
    compile(shape);
    check({{keys(70), 2}, {keys(1), 1}, {keys(150), 3}, {keys(41), 4}},
          integers(977 * shape.heads, 1), integers(101));
  }
}

TEST_P(SelectKeys, EqualScoresGoToTheLowerPositions) {
  compile({});
  std::vector<double> ones(60 * shape.dim, 1.0);
  check({{ones, tokens(60)}}, {1.0}, {1.0});
  // Scores that are all 0 or -0.
  check({{ones, tokens(60)}}, {-1.0}, {1.0, -1.0, 0.0});
}

TEST_P(SelectKeys, NaNCountsAsMinusInfinity) {
  compile({});
  std::vector<double> some = keys(90);
  for (int64_t p = 0; p < 90; ++p)
    if (p % 10 != 3)
      some[p * shape.dim + p % shape.dim] = NAN;
  check({{some, tokens(90)}}, integers(999), {1.0, 2.0, -1.0});
  check({{std::vector<double>(30 * shape.dim, NAN), tokens(30)}}, {1.0}, {1.0});
  check({{keys(30), tokens(30)}}, {NAN}, {1.0});
}

TEST_P(SelectKeys, ScoresThatHalfPrecisionDoesNotHave) {
  compile({.scale = 65536});
  check({{keys(90), tokens(40)}}, integers(999), {-1.0, -2.0, -3.0});
}

/// Candidates are thinned out many times, with the threshold among many equal scores.
TEST_P(SelectKeys, LongContextsLoseNoWinner) {
  compile({.heads = 1, .dim = 1, .topK = 2048, .block = 64, .scale = 1});
  const int64_t context = 16385;
  std::vector<double> close(context), few(context);
  std::uniform_real_distribution<float> uniform(1.0f, 1.245f);
  for (int64_t i = 0; i < context; ++i) {
    close[i] = uniform(random);
    few[i] = 1 + i * 37 % 5;
  }
  check({{close, 1}}, {1.0}, {1.0});
  check({{few, 1}}, {1.0}, {1.0});
  std::sort(close.begin(), close.end());
  check({{close, 1}}, {1.0}, {1.0});
  std::reverse(close.begin(), close.end());
  check({{close, 1}}, {1.0}, {1.0});
}

TEST_P(SelectKeys, BothSidesOfTopK) {
  compile({.heads = 2, .dim = 4, .topK = 2048, .block = 64});
  for (int64_t context : {2047, 2048, 2049})
    check({{keys(context), 1}}, integers(999), integers(41));
}

TEST_P(SelectKeys, WhatElseIsInTheStepDoesNotMatter) {
  compile({});
  std::vector<double> mine = keys(100);
  std::vector<double> queries = integers(shape.heads * shape.dim), weights = integers(shape.heads);
  std::vector<int32_t> alone = check({{mine, 1}}, queries, weights);
  std::vector<int32_t> together = check({{keys(33), 3}, {mine, 1}, {keys(7), 2}}, queries, weights);
  EXPECT_EQ(alone, std::vector<int32_t>(together.begin() + 3 * shape.topK,
                                        together.begin() + 4 * shape.topK));
}

INSTANTIATE_TEST_SUITE_P(Targets, SelectKeys,
                         testing::Values("cpu", "cpu:x86-64", "cpu:x86-64-v3", "cuda:sm_80"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) { return !std::isalnum(c); }, '_');
                           return name;
                         });

} // namespace
