// Compiled moe.kv_append and then moe.attention against the reference interpreter, on one cache.

#include "AttentionReference.h"
#include "Interpreted.h"

using namespace mlir;
using namespace mlir::moec::moe;
using namespace moec_test;

namespace {

/// One of many shapes. Heads, dimensions, blocks and windows are chosen to leave rests of every
/// vector and of every block of rows.
AttentionCase makeShape(unsigned seed) {
  std::mt19937 random(seed);
  auto pick = [&](auto... choices) {
    std::common_type_t<decltype(choices)...> list[] = {choices...};
    return list[random() % std::size(list)];
  };
  AttentionCase shape;
  shape.kvHeads = pick(1, 2, 3);
  shape.heads = shape.kvHeads * pick(1, 2, 3, 4, 5, 8, 11);
  shape.keyDim = pick(8, 19, 24, 64);
  shape.valueDim = pick(8, 21, 24, 64);
  shape.block = pick(4, 8, 16, 32);
  shape.window = pick(0, 0, 1, 6, 17, 70, 1000);
  shape.scale = 1 / std::sqrt(double(shape.keyDim));
  shape.softcap = pick(0.0, 0.0, 1.5, 20.0);
  shape.sinks = pick(false, true);
  shape.queryType = pick("f32", "f32", "bf16", "f16");
  shape.cacheType = pick("f32", "f32", shape.queryType.c_str());
  // The interpreter rounds rotated rows to their type, where kernels keep f32.
  if (shape.queryType == "f32" && pick(false, true)) {
    RotaryCase rotary;
    int64_t pairs = shape.keyDim / 2 - pick(0, 1);
    for (int64_t i = 0; i < pairs; ++i)
      rotary.frequencies.push_back(std::pow(10000.0, -double(i) / pairs));
    rotary.magnitude = 1.25;
    rotary.interleaved = pick(false, true);
    shape.rotary = {rotary};
  }
  return shape;
}

/// A cache that begins with the bytes of `buffer`.
std::shared_ptr<ReferenceCache> makeCache(Interpreted &reference, const TestBuffer &buffer,
                                          int64_t blocks) {
  auto type = reference.getArgumentType<CacheType>("append", 2);
  std::shared_ptr<ReferenceCache> cache = *ReferenceCache::create(type, blocks);
  llvm::copy(buffer.getBytes(), cache->getPool().getMutableBytes().begin());
  return cache;
}

/// The largest difference over what is allowed: `absolute`, and one rounding to the type in each of
/// the two computations.
double compare(const TestBuffer &actual, const ReferenceTensor &expected, int64_t begin,
               int64_t count, double absolute) {
  double worst = 0;
  for (int64_t i = begin; i < begin + count; ++i) {
    double reference = expected.getReal(i);
    if (std::isnan(reference) && std::isnan(actual.get(i)))
      continue; // no token's
    double allowed = absolute + 2 * actual.getRoundingError(reference);
    double error = std::abs(actual.get(i) - reference) / allowed;
    worst = error <= worst ? worst : error;
  }
  return std::isnan(worst) ? INFINITY : worst;
}

class AttentionInterpreter : public testing::TestWithParam<unsigned> {};

TEST_P(AttentionInterpreter, AppendsAndAttendsLikeTheReference) {
  AttentionCase shape = makeShape(GetParam());
  SCOPED_TRACE(shape.getAttentionText("?"));
  StrategyKernel append([&](std::string tokens) { return shape.getAppendText(tokens); });
  StrategyKernel attention([&](std::string tokens) { return shape.getAttentionText(tokens); });
  ASSERT_TRUE(append.isReady()) << append.getError();
  ASSERT_TRUE(attention.isReady()) << attention.getError();
  Interpreted reference(shape.describeAppend("?").printFunction("append") +
                        shape.describeAttention("?").printFunction("attend"));

  const std::vector<SequenceCase> steps[] = {
      {{1, 1}},
      {{51, 51}},
      {{17, 1, 2}, {150, 1, 3}, {64, 1, 4}, {15, 1, 6}},
      {{100, 23, 2}, {5, 5, 3}, {129, 1, 4}, {33, 17, 5}},
  };
  for (const std::vector<SequenceCase> &sequences : steps) {
    AttentionStep step(shape, sequences);
    int64_t tokens = step.getTokens(), count = sequences.size();
    std::mt19937 random(9);
    TestBuffer key(shape.queryType, tokens * shape.kvHeads * shape.keyDim);
    TestBuffer value(shape.queryType, tokens * shape.kvHeads * shape.valueDim);
    key.fillRandom(random);
    value.fillRandom(random);

    std::shared_ptr<ReferenceCache> cache = makeCache(reference, step.cache, step.poolBlocks);
    ReferenceTensor positions = reference.tensor(step.positions, {tokens});
    ReferenceTensor tokenSequences = reference.tensor(step.tokenSequences, {tokens});
    ReferenceTensor table = reference.tensor(step.blockTable, {count, step.tableBlocks});
    reference.call("append", {reference.tensor(key, {tokens, shape.kvHeads, shape.keyDim}),
                              reference.tensor(value, {tokens, shape.kvHeads, shape.valueDim}),
                              cache, positions, tokenSequences, table});
    std::vector<ReferenceValue> arguments = {
        reference.tensor(step.query, {tokens, shape.heads, shape.keyDim}), cache, positions,
        tokenSequences, table};
    if (shape.sinks)
      arguments.push_back(reference.tensor(step.sinks, {shape.heads}));
    std::vector<ReferenceValue> expected = reference.call("attend", arguments);
    ASSERT_EQ(expected.size(), 1u);

    ASSERT_TRUE(append.run(tokens, {{key.data(), {tokens}},
                                    {value.data(), {tokens}},
                                    {step.cache.data(), {step.poolBlocks}},
                                    {step.positions.data(), {tokens}},
                                    {step.tokenSequences.data(), {tokens}},
                                    {step.blockTable.data(), {count, step.tableBlocks}}}));
    EXPECT_LE(compare(step.cache, cache->getPool(), 0, step.cache.size(),
                      shape.rotary.empty() ? 0 : 2e-6),
              1)
        << "cache after a step of " << tokens << " tokens";
    TestBuffer result = step.run(attention);
    for (int64_t row = 0; row < tokens * shape.heads; ++row) {
      double largest = 0;
      for (int64_t i = 0; i < shape.valueDim; ++i)
        largest =
            std::max(largest, std::abs(expected[0].getTensor().getReal(row * shape.valueDim + i)));
      ASSERT_LE(compare(result, expected[0].getTensor(), row * shape.valueDim, shape.valueDim,
                        5e-6 * largest),
                1)
          << "row " << row << " of a step of " << tokens << " tokens";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionInterpreter, testing::Range(0u, 32u));

} // namespace
