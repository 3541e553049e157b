// The strategies that choose compressed entries and attend to them, against the reference
// interpreter.

#include "Interpreted.h"
#include "RecurrentKernel.h"

#include <numeric>

using namespace mlir;
using namespace mlir::moec::moe;
using namespace moec_test;

namespace {

struct EntriesCase {
  int64_t heads, dim, block, ratio;
  std::string type, cacheType;
  int64_t window = 6, chosen = 3;
  bool sinks = false, indices = true;

  int64_t getStride() const { return std::max<int64_t>(1, ratio / block); }
  int64_t getEntryBlock() const { return std::max<int64_t>(1, block / ratio); }

  KernelText::Argument getCache(int64_t size) const {
    std::string width = std::to_string(dim);
    return {"memref<?x" + std::to_string(2 * size * dim) + "x" + cacheType + ">",
            "!moe.cache<kv_heads = 1, key_dim = " + width + ", value_dim = " + width +
                ", block = " + std::to_string(size) + ", " + cacheType + ">"};
  }
};

/// Sequences with a past, and the tokens that a step gives them.
struct EntriesStep {
  std::vector<std::pair<int64_t, int64_t>> sequences; ///< length, new tokens
  int64_t block;
  std::mt19937 random{11};
  std::vector<int32_t> positions, tokenSequences, table;
  int64_t width = 0, pool = 0;

  EntriesStep(std::vector<std::pair<int64_t, int64_t>> sequences, int64_t block)
      : sequences(std::move(sequences)), block(block) {
    for (auto [length, count] : this->sequences)
      width = std::max(width, (length + block - 1) / block + 1);
    pool = width * getCount() + 2;
    std::vector<int32_t> places(pool);
    std::iota(places.begin(), places.end(), 0);
    std::shuffle(places.begin(), places.end(), random);
    table.assign(width * getCount(), -1);
    for (size_t i = 0; i < table.size(); i += 2) // behind the end some look like any other
      table[i] = places.front();
    for (int64_t s = 0; s < getCount(); ++s) {
      auto [length, count] = this->sequences[s];
      for (int64_t b = 0; b * block < length; ++b) {
        table[s * width + b] = places.back();
        places.pop_back();
      }
      for (int64_t p = length - count; p < length; ++p) {
        positions.push_back(static_cast<int32_t>(p));
        tokenSequences.push_back(static_cast<int32_t>(s));
      }
    }
  }
  int64_t getCount() const { return static_cast<int64_t>(sequences.size()); }
  int64_t getTokens() const { return static_cast<int64_t>(positions.size()); }
  std::string getTableType() const {
    return "tensor<" + std::to_string(getCount()) + "x" + std::to_string(width) + "xi32>";
  }
};

/// Text for a strategy of a target's family, "cpu" or "cuda".
KernelText describeSelection(const EntriesCase &shape, const EntriesStep &step,
                             const std::string &tokens, const std::string &family) {
  std::string heads = std::to_string(shape.heads), dim = std::to_string(shape.dim);
  KernelText text;
  std::string table = step.getTableType();
  text.inputs = {tensorArgument(tokens + "x" + heads + "x" + dim + "x" + shape.type),
                 tensorArgument(tokens + "x" + heads + "xf32"),
                 shape.getCache(shape.getEntryBlock()),
                 tensorArgument(tokens + "xi32"),
                 tensorArgument(tokens + "xi32"),
                 tensorArgument(table.substr(7, table.size() - 8))};
  text.outputs = {tensorArgument(tokens + "x" + std::to_string(shape.chosen) + "xi32")};
  text.op = "%r0 = moe.select_entries %0 weights(%1 : " + text.inputs[1].value +
            ") over %2 at (%3, %4, %5) {strategy = \"" + family +
            ".select_entries\", ratio = " + std::to_string(shape.ratio) +
            ", stride = " + std::to_string(shape.getStride()) + "} : " + text.inputs[0].value +
            ", " + text.inputs[2].value + ", " + text.inputs[3].value + ", " +
            text.inputs[4].value + ", " + text.inputs[5].value + " -> " + text.outputs[0].value;
  return text;
}

KernelText describeAttention(const EntriesCase &shape, const EntriesStep &step,
                             const std::string &tokens, const std::string &family) {
  std::string heads = std::to_string(shape.heads), dim = std::to_string(shape.dim);
  KernelText text;
  std::string table = step.getTableType(), operands, types;
  text.inputs = {tensorArgument(tokens + "x" + heads + "x" + dim + "x" + shape.type),
                 shape.getCache(shape.block),
                 shape.getCache(shape.getEntryBlock()),
                 tensorArgument(tokens + "xi32"),
                 tensorArgument(tokens + "xi32"),
                 tensorArgument(table.substr(7, table.size() - 8))};
  for (size_t i = 0; i < 6; ++i)
    types += (i ? ", " : "") + text.inputs[i].value;
  if (shape.sinks) {
    text.inputs.push_back(tensorArgument(heads + "xf32"));
    operands += " sinks(%6 : " + text.inputs.back().value + ")";
  }
  if (shape.indices) {
    std::string number = std::to_string(text.inputs.size());
    text.inputs.push_back(tensorArgument(tokens + "x" + std::to_string(shape.chosen) + "xi32"));
    operands += " indices(%" + number + " : " + text.inputs.back().value + ")";
  }
  text.outputs = {text.inputs[0]};
  text.op = "%r0 = moe.compressed_attention %0 over %1 and %2 at (%3, %4, %5)" + operands +
            " {strategy = \"" + family +
            ".compressed_attention\", scale = 0.25, window = " + std::to_string(shape.window) +
            ", ratio = " + std::to_string(shape.ratio) +
            ", stride = " + std::to_string(shape.getStride()) + "} : " + types + " -> " +
            text.outputs[0].value;
  return text;
}

std::shared_ptr<ReferenceCache> makeCache(Interpreted &reference, const std::string &function,
                                          unsigned argument, const TestBuffer &buffer,
                                          int64_t blocks) {
  auto type = reference.getArgumentType<CacheType>(function, argument);
  std::shared_ptr<ReferenceCache> cache = *ReferenceCache::create(type, blocks);
  llvm::copy(buffer.getBytes(), cache->getPool().getMutableBytes().begin());
  return cache;
}

class Entries : public testing::TestWithParam<const char *> {
protected:
  /// Chooses entries and attends to them, compiled and interpreted.
  void compare(const EntriesCase &shape, const EntriesStep &step) {
    std::string target = GetParam(), family = target.substr(0, target.find(':'));
    StrategyKernel select(
        [&](std::string t) { return describeSelection(shape, step, t, family).print(); }, target);
    StrategyKernel attend(
        [&](std::string t) { return describeAttention(shape, step, t, family).print(); }, target);
    ASSERT_TRUE(select.isReady()) << select.getError();
    ASSERT_TRUE(attend.isReady()) << attend.getError();
    Interpreted reference(describeSelection(shape, step, "?", family).printFunction("select") +
                          describeAttention(shape, step, "?", family).printFunction("attend"));

    int64_t tokens = step.getTokens(), sequences = step.getCount();
    std::mt19937 random(5);
    TestBuffer query(shape.type, tokens * shape.heads * shape.dim);
    TestBuffer weights("f32", tokens * shape.heads), sinks("f32", shape.heads);
    TestBuffer rows(shape.cacheType, step.pool * 2 * shape.block * shape.dim);
    TestBuffer entries(shape.cacheType, step.pool * 2 * shape.getEntryBlock() * shape.dim);
    for (TestBuffer *buffer : {&query, &weights, &sinks, &rows, &entries})
      buffer->fillRandom(random);
    std::vector<int32_t> positions = step.positions, tokenSequences = step.tokenSequences,
                         table = step.table, chosen(tokens * shape.chosen, -7);
    ASSERT_TRUE(select.run(tokens, {{query.data(), {tokens}},
                                    {weights.data(), {tokens}},
                                    {entries.data(), {step.pool}},
                                    {positions.data(), {tokens}},
                                    {tokenSequences.data(), {tokens}},
                                    {table.data()},
                                    {chosen.data(), {tokens}}}));
    ReferenceTensor places = reference.tensor(positions, {tokens}),
                    owners = reference.tensor(tokenSequences, {tokens}),
                    blocks = reference.tensor(table, {sequences, step.width}),
                    queries = reference.tensor(query, {tokens, shape.heads, shape.dim});
    std::vector<ReferenceValue> expected = reference.call(
        "select", {queries, reference.tensor(weights, {tokens, shape.heads}),
                   makeCache(reference, "select", 2, entries, step.pool), places, owners, blocks});
    ASSERT_EQ(expected.size(), 1u);
    for (size_t i = 0; i < chosen.size(); ++i)
      ASSERT_EQ(chosen[i], expected[0].getTensor().getInteger(i)) << "choice " << i;

    TestBuffer result(shape.type, query.size());
    std::vector<Binding> bindings = {
        {query.data(), {tokens}},          {rows.data(), {step.pool}},
        {entries.data(), {step.pool}},     {positions.data(), {tokens}},
        {tokenSequences.data(), {tokens}}, {table.data()}};
    std::vector<ReferenceValue> arguments = {queries,
                                             makeCache(reference, "attend", 1, rows, step.pool),
                                             makeCache(reference, "attend", 2, entries, step.pool),
                                             places,
                                             owners,
                                             blocks};
    if (shape.sinks) {
      bindings.push_back({sinks.data()});
      arguments.push_back(reference.tensor(sinks, {shape.heads}));
    }
    if (shape.indices) {
      bindings.push_back({chosen.data(), {tokens}});
      arguments.push_back(reference.tensor(chosen, {tokens, shape.chosen}));
    }
    bindings.push_back({result.data(), {tokens}});
    ASSERT_TRUE(attend.run(tokens, bindings));
    expected = reference.call("attend", arguments);
    ASSERT_EQ(expected.size(), 1u);
    for (int64_t i = 0; i < result.size(); ++i) {
      double wanted = expected[0].getTensor().getReal(i);
      ASSERT_NEAR(result.get(i), wanted, 1e-5 + 2 * result.getRoundingError(wanted))
          << "element " << i;
    }
  }
};

TEST_P(Entries, EqualTheInterpreter) {
  if (!canRun(GetParam()))
    GTEST_SKIP() << "this machine cannot run " << GetParam();
  const EntriesCase cases[] = {
      {4, 16, 4, 4, "f32", "f32"},
      {3, 37, 8, 4, "f32", "f32", 1, 2, true},
      {8, 64, 4, 8, "bf16", "bf16", 17, 5, true},
      {11, 20, 16, 2, "f32", "bf16", 6, 9},
      {5, 100, 4, 16, "bf16", "f32", 128, 1, true, false},
      {40, 8, 4, 4, "f32", "f32", 6, 4, false, false},
  };
  const std::vector<std::pair<int64_t, int64_t>> steps[] = {
      {{17, 1}, {150, 2}, {64, 1}, {15, 3}, {3, 3}}, {{53, 11}, {600, 1}, {1, 1}}};
  for (const EntriesCase &shape : cases)
    for (const auto &sequences : steps) {
      SCOPED_TRACE(std::to_string(shape.heads) + " heads of " + std::to_string(shape.dim) +
                   ", first length " + std::to_string(sequences[0].first));
      compare(shape, EntriesStep(sequences, shape.block));
    }
}

INSTANTIATE_TEST_SUITE_P(Targets, Entries,
                         testing::Values("cpu", "cpu:x86-64", "cpu:x86-64-v3", "cuda:sm_80"),
                         getTargetName);

} // namespace
