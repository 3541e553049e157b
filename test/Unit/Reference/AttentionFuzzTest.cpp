// Random small shapes of paged attention against a dense formulation that knows no pages.

#include "test/Unit/Reference/TestModules.h"

#include "mlir/IR/Builders.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

using namespace mlir;
using namespace mlir::moec::moe;

namespace {

using Numbers = std::vector<double>;

/// One random step: sequences with a past, each with some new tokens.
class AttentionCase {
public:
  explicit AttentionCase(unsigned seed) : random(seed) {
    kvHeads = pick(1, 3);
    heads = kvHeads * pick(1, 3);
    keyDim = pick(1, 9);
    valueDim = pick(1, 9);
    block = pick(1, 6);
    window = pick(0, 1) ? pick(1, 12) : 0;
    softcap = pick(0, 2) == 0 ? 1.5 : 0;
    hasSinks = pick(0, 1);
    indexWidth = pick(0, 2) == 0 ? pick(1, 10) : 0;
    for (int64_t i = pick(1, 4); i > 0; --i) {
      lengths.push_back(pick(0, 20));
      newTokens.push_back(pick(0, static_cast<int>(lengths.back())));
    }
    makeTable();
    makeContent();
  }

  std::string getText() const {
    std::string cache = "!moe.cache<kv_heads = " + std::to_string(kvHeads) +
                        ", key_dim = " + std::to_string(keyDim) +
                        ", value_dim = " + std::to_string(valueDim) +
                        ", block = " + std::to_string(block) + ", f32>";
    std::string ints = "tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>";
    std::string keys =
        "tensor<?x" + std::to_string(kvHeads) + "x" + std::to_string(keyDim) + "xf32>";
    std::string values =
        "tensor<?x" + std::to_string(kvHeads) + "x" + std::to_string(valueDim) + "xf32>";
    std::string query =
        "tensor<?x" + std::to_string(heads) + "x" + std::to_string(keyDim) + "xf32>";
    std::string result =
        "tensor<?x" + std::to_string(heads) + "x" + std::to_string(valueDim) + "xf32>";
    std::string sinks = "tensor<" + std::to_string(heads) + "xf32>";
    return "func.func @append(%k: " + keys + ", %v: " + values + ", %cache: " + cache +
           ", %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<?x?xi32>) {\n"
           "moe.kv_append %k, %v into %cache at (%p, %s, %t) : " +
           keys + ", " + values + ", " + cache + ", " + ints + "\nreturn }\n" +
           "func.func @attend(%q: " + query + ", %cache: " + cache +
           ", %p: tensor<?xi32>, %s: tensor<?xi32>, %t: tensor<?x?xi32>, %sinks: " + sinks +
           ", %i: tensor<?x?xi32>) -> " + result +
           " {\n%0 = moe.attention %q over %cache at (%p, %s, %t)" +
           (hasSinks ? " sinks(%sinks : " + sinks + ")" : "") +
           (indexWidth ? " indices(%i : tensor<?x?xi32>)" : "") +
           " {scale = 0.7, window = " + std::to_string(window) +
           ", softcap = " + std::to_string(softcap) + "} : " + query + ", " + cache + ", " + ints +
           " -> " + result + "\nreturn %0 : " + result + " }";
  }

  void run(TestContext &test) {
    OwningOpRef<ModuleOp> module = test.parse(getText());
    ASSERT_TRUE(module);
    auto cacheType =
        cast<CacheType>(module->lookupSymbol<func::FuncOp>("append").getArgumentTypes()[2]);
    std::shared_ptr<ReferenceCache> cache = *ReferenceCache::create(cacheType, poolBlocks);
    Interpreter interpreter(*module, nullptr);
    Builder builder(test.get());
    auto reals = [&](ArrayRef<int64_t> shape, const Numbers &values) {
      return *ReferenceTensor::createFrom(builder.getF32Type(), shape, ArrayRef<double>(values));
    };
    auto integers = [&](ArrayRef<int64_t> shape, const std::vector<int32_t> &values) {
      return *ReferenceTensor::createFrom(builder.getI32Type(), shape, ArrayRef<int32_t>(values));
    };
    auto sequences = static_cast<int64_t>(lengths.size());
    ReferenceTensor tableTensor = integers({sequences, width}, table);

    // All tokens in one step of their own, in a random order: only positions say where they belong.
    std::vector<std::pair<int64_t, int64_t>> tokens;
    for (int64_t s = 0; s < sequences; ++s)
      for (int64_t p = 0; p < lengths[s]; ++p)
        tokens.emplace_back(s, p);
    std::shuffle(tokens.begin(), tokens.end(), random);
    Numbers tokenKeys, tokenValues;
    std::vector<int32_t> positions, tokenSequences;
    for (auto [s, p] : tokens) {
      auto append = [p = p](Numbers &to, const Numbers &from, int64_t row) {
        to.insert(to.end(), from.begin() + p * row, from.begin() + (p + 1) * row);
      };
      append(tokenKeys, keys[s], kvHeads * keyDim);
      append(tokenValues, values[s], kvHeads * valueDim);
      positions.push_back(static_cast<int32_t>(p));
      tokenSequences.push_back(static_cast<int32_t>(s));
    }
    auto count = static_cast<int64_t>(tokens.size());
    ASSERT_TRUE(succeeded(interpreter.call(
        "append",
        {reals({count, kvHeads, keyDim}, tokenKeys), reals({count, kvHeads, valueDim}, tokenValues),
         cache, integers({count}, positions), integers({count}, tokenSequences), tableTensor})))
        << test.takeErrors();

    // The new tokens attend.
    positions.clear();
    tokenSequences.clear();
    for (int64_t s = 0; s < sequences; ++s)
      for (int64_t p = lengths[s] - newTokens[s]; p < lengths[s]; ++p) {
        positions.push_back(static_cast<int32_t>(p));
        tokenSequences.push_back(static_cast<int32_t>(s));
      }
    count = static_cast<int64_t>(positions.size());
    Numbers query = makeNumbers(count * heads * keyDim), sinks = makeNumbers(heads);
    std::vector<int32_t> indices = makeIndices(positions);
    FailureOr<SmallVector<ReferenceValue>> results = interpreter.call(
        "attend", {reals({count, heads, keyDim}, query), cache, integers({count}, positions),
                   integers({count}, tokenSequences), tableTensor, reals({heads}, sinks),
                   integers({count, indexWidth}, indices)});
    ASSERT_TRUE(succeeded(results)) << test.takeErrors();
    Numbers expected = attendDensely(query, positions, tokenSequences, sinks, indices);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(results->front().getTensor().getReal(i), expected[i],
                  1e-6 * std::fabs(expected[i]) + 1e-7);
  }

private:
  int64_t pick(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  }

  /// Numbers that are floats.
  Numbers makeNumbers(int64_t count) {
    std::normal_distribution<float> normal;
    Numbers numbers(count);
    for (double &x : numbers)
      x = normal(random);
    return numbers;
  }

  void makeTable() {
    width = 1;
    for (int64_t length : lengths)
      width = std::max(width, (length + block - 1) / block);
    poolBlocks = width * static_cast<int64_t>(lengths.size()) + pick(0, 3);
    std::vector<int32_t> free(poolBlocks);
    std::iota(free.begin(), free.end(), 0);
    std::shuffle(free.begin(), free.end(), random);
    for (int64_t length : lengths)
      for (int64_t b = 0; b < width; ++b) {
        bool isUsed = b * block < length;
        table.push_back(isUsed ? free.back() : -1);
        if (isUsed)
          free.pop_back();
      }
  }

  void makeContent() {
    for (int64_t length : lengths) {
      keys.push_back(makeNumbers(length * kvHeads * keyDim));
      values.push_back(makeNumbers(length * kvHeads * valueDim));
    }
  }

  /// Different positions up to the token's own and some beyond it, and -1, in any order.
  std::vector<int32_t> makeIndices(const std::vector<int32_t> &positions) {
    std::vector<int32_t> indices;
    for (int32_t position : positions) {
      std::vector<int32_t> choices(position + 3);
      std::iota(choices.begin(), choices.end(), 0);
      choices.resize(choices.size() + 2, -1);
      choices.resize(std::max<size_t>(choices.size(), indexWidth), -1);
      std::shuffle(choices.begin(), choices.end(), random);
      indices.insert(indices.end(), choices.begin(), choices.begin() + indexWidth);
    }
    return indices;
  }

  Numbers attendDensely(const Numbers &query, const std::vector<int32_t> &positions,
                        const std::vector<int32_t> &tokenSequences, const Numbers &sinks,
                        const std::vector<int32_t> &indices) const {
    Numbers out(positions.size() * heads * valueDim, 0.0);
    for (size_t t = 0; t < positions.size(); ++t)
      for (int64_t h = 0; h < heads; ++h) {
        int64_t s = tokenSequences[t], kvHead = h * kvHeads / heads;
        Numbers weights(lengths[s], 0.0);
        double total = hasSinks ? std::exp(sinks[h]) : 0.0;
        for (int64_t j = 0; j < lengths[s]; ++j) {
          bool isVisible = j <= positions[t] && (window == 0 || positions[t] - j < window);
          if (indexWidth)
            isVisible &=
                std::find(indices.begin() + t * indexWidth, indices.begin() + (t + 1) * indexWidth,
                          j) != indices.begin() + (t + 1) * indexWidth;
          if (!isVisible)
            continue;
          double score = 0;
          for (int64_t i = 0; i < keyDim; ++i)
            score +=
                query[(t * heads + h) * keyDim + i] * keys[s][(j * kvHeads + kvHead) * keyDim + i];
          score *= 0.7;
          if (softcap != 0)
            score = softcap * std::tanh(score / softcap);
          weights[j] = std::exp(score); // small enough without subtracting the largest
          total += weights[j];
        }
        for (int64_t j = 0; j < lengths[s]; ++j)
          for (int64_t i = 0; weights[j] > 0 && i < valueDim; ++i)
            out[(t * heads + h) * valueDim + i] +=
                weights[j] / total * values[s][(j * kvHeads + kvHead) * valueDim + i];
      }
    return out;
  }

  std::mt19937 random;
  int64_t heads, kvHeads, keyDim, valueDim, block, window, indexWidth;
  int64_t width = 1, poolBlocks = 1;
  double softcap;
  bool hasSinks;
  std::vector<int64_t> lengths, newTokens;
  std::vector<int32_t> table;
  std::vector<Numbers> keys, values;
};

} // namespace

TEST(AttentionFuzz, PagedEqualsDense) {
  TestContext test;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    AttentionCase(seed).run(test);
    if (HasFatalFailure() || HasNonfatalFailure())
      break;
  }
}
