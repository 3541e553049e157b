// The strategy that writes keys and values into the cache.

#include "AttentionReference.h"

#include "gtest/gtest.h"

using namespace moec_test;

namespace {

struct AppendStep {
  AttentionCase shape;
  int64_t sequences, tableBlocks, poolBlocks;
  std::vector<int32_t> positions, tokenSequences, blockTable;
  TestBuffer key, value, cache;

  AppendStep(const AttentionCase &shape, int64_t tokens, std::vector<int32_t> positions,
             std::vector<int32_t> tokenSequences, int64_t sequences,
             std::vector<int32_t> blockTable, int64_t poolBlocks)
      : shape(shape), sequences(sequences), tableBlocks(blockTable.size() / sequences),
        poolBlocks(poolBlocks), positions(positions), tokenSequences(tokenSequences),
        blockTable(blockTable), key(shape.queryType, tokens * shape.kvHeads * shape.keyDim),
        value(shape.queryType, tokens * shape.kvHeads * shape.valueDim),
        // One block more than the kernel knows of, before and after the pool.
        cache(shape.cacheType, (poolBlocks + 2) * shape.getBlockElements()) {
    std::mt19937 generator(5);
    key.fillRandom(generator);
    value.fillRandom(generator);
  }

  void run(const StrategyKernel &kernel) {
    int64_t tokens = positions.size();
    auto *pool =
        static_cast<std::byte *>(cache.data()) + shape.getBlockElements() * cache.getWidth();
    Unchanged unchanged{&key, &value};
    ASSERT_TRUE(kernel.run(tokens, {{key.data(), {tokens}},
                                    {value.data(), {tokens}},
                                    {pool, {poolBlocks}},
                                    {positions.data(), {tokens}},
                                    {tokenSequences.data(), {tokens}},
                                    {blockTable.data(), {sequences, tableBlocks}}}));
  }

  /// Checks every element of the pool and of the blocks around it.
  void check(double tolerance) const {
    std::vector<double> expected(cache.size(), NAN);
    for (size_t token = 0; token < positions.size(); ++token) {
      int64_t position = positions[token], sequence = tokenSequences[token];
      if (position < 0 || position >= tableBlocks * shape.block || sequence < 0 ||
          sequence >= sequences)
        continue;
      int64_t block = blockTable[sequence * tableBlocks + position / shape.block];
      if (block < 0 || block >= poolBlocks)
        continue;
      int64_t base = (block + 1) * shape.getBlockElements();
      for (int64_t head = 0; head < shape.kvHeads; ++head) {
        std::vector<double> row(shape.keyDim);
        for (int64_t i = 0; i < shape.keyDim; ++i)
          row[i] = key.get((token * shape.kvHeads + head) * shape.keyDim + i);
        if (!shape.rotary.empty())
          shape.rotary[0].apply(row, position);
        for (int64_t i = 0; i < shape.keyDim; ++i)
          expected[base + keyElement(shape, head, position % shape.block, i)] = row[i];
        for (int64_t i = 0; i < shape.valueDim; ++i)
          expected[base + valueElement(shape, head, position % shape.block, i)] =
              value.get((token * shape.kvHeads + head) * shape.valueDim + i);
      }
    }
    for (int64_t i = 0; i < cache.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(cache.get(i))) << "element " << i << " was written";
        continue;
      }
      double allowed = tolerance + cache.getEpsilon() * std::abs(expected[i]);
      ASSERT_LE(std::abs(cache.get(i) - expected[i]), allowed) << "element " << i;
    }
  }
};

StrategyKernel compileAppend(const AttentionCase &shape) {
  return StrategyKernel([shape](std::string tokens) { return shape.getAppendText(tokens); });
}

RotaryCase makeRotary(int64_t pairs, int64_t offset, bool interleaved) {
  RotaryCase rotary;
  for (int64_t i = 0; i < pairs; ++i)
    rotary.frequencies.push_back(std::pow(10000.0, -double(i) / pairs));
  rotary.magnitude = 1.25;
  rotary.offset = offset;
  rotary.interleaved = interleaved;
  return rotary;
}

AppendStep makeStep(const AttentionCase &shape) {
  // Two sequences across a block border, one of a single token, rows in no special order.
  std::vector<int32_t> positions, sequences;
  for (int32_t p = 10; p < 23; ++p) {
    positions.push_back(p);
    sequences.push_back(1);
  }
  for (int32_t p : {47, 0, 1, 31}) {
    positions.push_back(p);
    sequences.push_back(p == 47 ? 0 : 2);
  }
  int64_t perSequence = 48 / shape.block;
  std::vector<int32_t> table(3 * perSequence);
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = (i * 5 + 3) % table.size();
  return AppendStep(shape, positions.size(), positions, sequences, 3, table, table.size() + 1);
}

TEST(KVAppend, CopiesWithoutRotation) {
  for (const char *type : {"f32", "bf16", "f16"})
    for (int64_t block : {4, 16}) {
      AttentionCase shape;
      shape.keyDim = 24;
      shape.valueDim = 40;
      shape.block = block;
      shape.queryType = shape.cacheType = type;
      StrategyKernel kernel = compileAppend(shape);
      ASSERT_TRUE(kernel.isReady()) << kernel.getError();
      AppendStep step = makeStep(shape);
      step.run(kernel);
      step.check(0);
    }
}

TEST(KVAppend, RotatesKeys) {
  for (bool interleaved : {false, true})
    for (int64_t pairs : {32, 11}) {
      AttentionCase shape;
      shape.cacheType = pairs == 32 ? "f32" : "bf16";
      shape.rotary = {makeRotary(pairs, pairs == 32 ? 0 : 42, interleaved)};
      StrategyKernel kernel = compileAppend(shape);
      ASSERT_TRUE(kernel.isReady()) << kernel.getError();
      AppendStep step = makeStep(shape);
      step.run(kernel);
      step.check(2e-6);
    }
}

TEST(KVAppend, RotatesFarPositions) {
  AttentionCase shape;
  shape.rotary = {makeRotary(32, 0, false)};
  StrategyKernel kernel = compileAppend(shape);
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  // One block serves all: positions that differ modulo 16.
  std::vector<int32_t> positions = {99'999, 314'160, 700'001, 1'000'002, 1'000'003};
  std::vector<int32_t> table(62'501, 2);
  AppendStep step(shape, positions.size(), positions, std::vector<int32_t>(positions.size(), 0), 1,
                  table, 4);
  step.run(kernel);
  step.check(2e-6);
}

TEST(KVAppend, WrongTablesWriteNothing) {
  AttentionCase shape;
  shape.keyDim = shape.valueDim = 8;
  StrategyKernel kernel = compileAppend(shape);
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  // Blocks -1 and 3 of a pool of 3; positions and sequences outside the table.
  AppendStep step(shape, 8, {0, 17, 33, 5, -1, 48, 6, 7}, {0, 0, 0, 1, 1, 1, -1, 2}, 2,
                  {-1, 3, 2, 1 << 30, 0, 1}, 3);
  step.run(kernel);
  step.check(0);
}

} // namespace
