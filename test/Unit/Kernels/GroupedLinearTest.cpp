// The grouped_linear strategies against double precision, and their bits against themselves with
// other tokens.

#include "ProductCase.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>

using namespace moec_test;

namespace {

struct Activation {
  std::string kind; ///< empty: none
  double alpha = 1, beta = 0, limit = 0;
  bool interleaved = false;

  double apply(double gate, double up) const {
    auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
    if (kind == "silu")
      return gate * sigmoid(gate) * up;
    if (kind == "gelu")
      return 0.5 * gate * std::erfc(-gate / std::sqrt(2.0)) * up;
    if (kind == "gelu_tanh")
      return 0.5 * gate *
             (1 + std::tanh(std::sqrt(2 / M_PI) * (gate + 0.044715 * gate * gate * gate))) * up;
    if (kind == "relu")
      return (gate < 0 ? 0 : gate) * up;
    if (kind == "situ")
      return beta * std::tanh(gate / beta) * sigmoid(gate) *
             (alpha == 0 ? up : alpha * std::tanh(up / alpha));
    if (limit > 0) {
      gate = std::min(gate, limit);
      up = std::clamp(up, -limit, limit);
    }
    return gate * sigmoid(alpha * gate) * (up + beta);
  }

  std::string print() const {
    auto number = [](double x) {
      char text[32];
      snprintf(text, sizeof(text), "%.6e", x);
      return std::string(text);
    };
    return "#moe.activation<" + kind + ", alpha = " + number(alpha) + ", beta = " + number(beta) +
           ", limit = " + number(limit) + ", interleaved = " + (interleaved ? "true" : "false") +
           ">";
  }
};

struct GroupedCase {
  std::string weight = "mxfp4", input = "f32", result = "f32";
  int64_t n = 64, k = 64, topK = 1, experts = 5;
  bool bias = false, gather = false, scatter = false;
  Activation activation;
  TestTarget target;

  int64_t getColumns() const { return activation.kind.empty() ? n : n / 2; }
};

class GroupedProblem {
public:
  explicit GroupedProblem(const GroupedCase &shape, bool batchInvariant = false)
      : shape(shape), generator(13),
        weight(shape.weight, shape.experts, shape.n, shape.k, generator),
        bias("bf16", shape.experts * shape.n), packed(weight.pack()),
        kernel([this](std::string tokens) { return makeText(tokens); }, shape.target.name,
               shape.target.getOptions(batchInvariant)) {
    bias.fillRandom(generator);
  }

  /// Tokens of each expert. Their sum is made a multiple of top_k by giving more to the last.
  void route(std::vector<int64_t> counts) {
    int64_t total = std::accumulate(counts.begin(), counts.end(), int64_t(0));
    counts.back() += (shape.topK - total % shape.topK) % shape.topK;
    offsets.assign(1, 0);
    for (int64_t count : counts)
      offsets.push_back(offsets.back() + count);
    pairs.resize(offsets.back());
    std::iota(pairs.begin(), pairs.end(), 0);
    std::shuffle(pairs.begin(), pairs.end(), generator);
    input = TestBuffer(shape.input, countInputRows() * shape.k);
    input.fillRandom(generator);
  }

  GuardedResult run() {
    GuardedResult result(shape.result, countPairs() * shape.getColumns());
    std::vector<Binding> bindings = {{input.data(), {countInputRows()}},
                                     {offsets.data()},
                                     {pairs.data(), {countPairs()}},
                                     {packed.data()}};
    if (shape.bias)
      bindings.push_back({bias.data()});
    bindings.push_back({result.buffer.data(), {countPairs()}});
    Unchanged unchanged{&input, &bias};
    EXPECT_TRUE(kernel.run(countInputRows(), bindings));
    EXPECT_TRUE(result.isGuardIntact());
    return result;
  }

  void check(const GuardedResult &result) {
    for (int64_t e = 0; e < shape.experts; ++e)
      for (int64_t i = offsets[e]; i < offsets[e + 1]; ++i)
        for (int64_t column = 0; column < shape.getColumns(); ++column)
          ASSERT_NO_FATAL_FAILURE(checkElement(result, e, i, column));
  }

  /// The results of place `i`, as bits.
  std::vector<std::byte> getRow(const GuardedResult &result, int64_t i) const {
    int64_t bytes = shape.getColumns() * result.buffer.getWidth();
    auto begin = result.buffer.getBytes().begin() + getResultRow(i) * bytes;
    return {begin, begin + bytes};
  }

  /// Routes nothing but what place `i` of another problem of this shape has.
  void routeOnly(const GroupedProblem &other, int64_t i) {
    offsets.clear();
    for (int32_t offset : other.offsets)
      offsets.push_back(offset > i);
    pairs = {0};
    input = TestBuffer(shape.input, shape.k);
    for (int64_t k = 0; k < shape.k; ++k)
      input.set(k, other.input.get(other.getInputRow(i) * shape.k + k));
  }

  int64_t countPairs() const { return pairs.size(); }
  TestWeight &getWeight() { return weight; }
  void repack() { packed = weight.pack(); }
  const StrategyKernel &getKernel() const { return kernel; }

private:
  int64_t countInputRows() const { return shape.gather ? countPairs() / shape.topK : countPairs(); }
  int64_t getInputRow(int64_t i) const { return shape.gather ? pairs[i] / shape.topK : i; }
  int64_t getResultRow(int64_t i) const { return shape.scatter ? pairs[i] : i; }

  /// A row's sum and how far an f32 kernel may be from it.
  struct Sum {
    double value = 0, tolerance = 0;
  };
  Sum sumRow(int64_t expert, int64_t i, int64_t row) const {
    double sum = 0, magnitude = 0;
    std::vector<double> activations(shape.k);
    for (int64_t k = 0; k < shape.k; ++k) {
      activations[k] = input.get(getInputRow(i) * shape.k + k);
      double term = activations[k] * weight.get(expert, row, k);
      sum += term;
      magnitude += std::abs(term);
    }
    double tolerance = (32 + shape.k / 32 + 8) * 0x1p-24 * magnitude;
    if (weight.isMXFP4() && shape.input == "bf16")
      tolerance += weight.getIntegerTolerance(expert, row, activations);
    if (shape.bias)
      sum += bias.get(expert * shape.n + row);
    return {sum, tolerance + 2 * 0x1p-24 * std::abs(sum)};
  }

  void checkElement(const GuardedResult &result, int64_t expert, int64_t i, int64_t column) const {
    double want, tolerance;
    if (shape.activation.kind.empty()) {
      Sum sum = sumRow(expert, i, column);
      want = sum.value, tolerance = sum.tolerance;
    } else {
      const Activation &activation = shape.activation;
      Sum gate = sumRow(expert, i, activation.interleaved ? 2 * column : column);
      Sum up = sumRow(expert, i, activation.interleaved ? 2 * column + 1 : column + shape.n / 2);
      want = activation.apply(gate.value, up.value);
      // How the sums' tolerances come through, and some last bits of the activation itself.
      tolerance = 16 * 0x1p-24 * std::abs(want);
      for (double direction : {-1.0, 1.0}) {
        tolerance +=
            std::abs(want - activation.apply(gate.value + direction * gate.tolerance, up.value));
        tolerance +=
            std::abs(want - activation.apply(gate.value, up.value + direction * up.tolerance));
      }
    }
    // The sigmoid of a very negative number may be zero.
    tolerance += result.buffer.getEpsilon() * std::abs(want) + 0x1p-118;
    double got = result.buffer.get(getResultRow(i) * shape.getColumns() + column);
    if (std::isnan(want))
      ASSERT_TRUE(std::isnan(got))
          << "expert " << expert << ", place " << i << ", column " << column;
    else
      ASSERT_NEAR(got, want, tolerance)
          << "expert " << expert << ", place " << i << ", column " << column;
  }

  std::string makeText(std::string rows) {
    std::string count = rows;
    if (rows != "?" && shape.gather)
      count = std::to_string(std::stoll(rows) * shape.topK);
    KernelText text;
    text.inputs = {tensorArgument(rows + "x" + std::to_string(shape.k) + "x" + shape.input),
                   tensorArgument(std::to_string(shape.experts + 1) + "xi32"),
                   tensorArgument(count + "xi32"),
                   {weight.getStorageType(), weight.getPackedType()}};
    std::string attributes = "top_k = " + std::to_string(shape.topK) + " : i64", biasText;
    if (shape.bias) {
      text.inputs.push_back(
          tensorArgument(std::to_string(shape.experts) + "x" + std::to_string(shape.n) + "xbf16"));
      biasText = " bias(%4 : " + text.inputs[4].value + ")";
    }
    if (!shape.activation.kind.empty())
      attributes += ", activation = " + shape.activation.print();
    if (shape.gather)
      attributes += ", gather";
    if (shape.scatter)
      attributes += ", scatter";
    text.outputs = {
        tensorArgument(count + "x" + std::to_string(shape.getColumns()) + "x" + shape.result)};
    text.op = "%r0 = moe.grouped_linear %0 by %1, %2 weight(%3 : " + weight.getPackedType() + ")" +
              biasText + " {strategy = \"" + shape.target.getStrategy("grouped_linear") + "\", " +
              attributes + "} : " + text.inputs[0].value + ", " + text.inputs[1].value + ", " +
              text.inputs[2].value + " -> " + text.outputs[0].value;
    return text.print();
  }

  GroupedCase shape;
  std::mt19937 generator;
  TestWeight weight;
  TestBuffer bias;
  std::vector<std::byte> packed;
  TestBuffer input{"f32", 0};
  std::vector<int32_t> offsets, pairs;
  StrategyKernel kernel;
};

class GroupedLinearSweep : public testing::TestWithParam<GroupedCase> {};

TEST_P(GroupedLinearSweep, MatchesDoublePrecision) {
  GroupedProblem problem(GetParam());
  ASSERT_TRUE(problem.getKernel().isReady()) << problem.getKernel().getError();
  for (std::vector<int64_t> counts : std::vector<std::vector<int64_t>>{
           {0, 0, 0, 0, 0}, {0, 0, 1, 0, 0}, {1, 3, 0, 17, 2}, {0, 64, 5, 0, 110}}) {
    problem.route(counts);
    ASSERT_NO_FATAL_FAILURE(problem.check(problem.run()));
  }
}

TEST_P(GroupedLinearSweep, BitsOfATokenDoNotDependOnOthers) {
  if (GetParam().target.matrixUnit)
    GTEST_SKIP() << "experts of many tokens go to the matrix unit, others do not";
  GroupedCase shape = GetParam();
  shape.topK = 1;
  GroupedProblem all(shape, /*batchInvariant=*/true), one(shape, /*batchInvariant=*/true);
  ASSERT_TRUE(all.getKernel().isReady()) << all.getKernel().getError();
  all.route({2, 0, 23, 4, 13});
  GuardedResult together = all.run();
  for (int64_t i = 0; i < all.countPairs(); i += 3) {
    one.routeOnly(all, i);
    EXPECT_EQ(one.getRow(one.run(), 0), all.getRow(together, i)) << "place " << i;
  }
}

TEST(GroupedLinear, ManyChoicesOfMoreExperts) {
  for (int64_t choices : {6, 18, 33}) {
    GroupedCase shape;
    shape.topK = choices;
    shape.experts = choices + 7;
    shape.gather = shape.scatter = true;
    shape.activation = {"swiglu", 1.702, 1, 7, true};
    GroupedProblem problem(shape);
    ASSERT_TRUE(problem.getKernel().isReady()) << problem.getKernel().getError();
    for (int64_t tokens : {1, 2, 7}) {
      // Every token goes to `choices` experts, other ones each.
      std::vector<int64_t> counts(shape.experts, 0);
      for (int64_t pair = 0; pair < tokens * choices; ++pair)
        ++counts[(pair + pair / choices) % shape.experts];
      problem.route(counts);
      ASSERT_NO_FATAL_FAILURE(problem.check(problem.run()));
    }
  }
}

GroupedCase with(std::function<void(GroupedCase &)> change) {
  GroupedCase shape;
  change(shape);
  return shape;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GroupedLinearSweep,
    testing::Values(
        with([](auto &c) {}), with([](auto &c) {
          c.n = 258, c.k = 160, c.bias = true, c.scatter = true, c.result = "bf16";
        }),
        with([](auto &c) {
          c.n = 320, c.k = 256, c.topK = 4, c.bias = c.gather = true, c.input = c.result = "bf16";
          c.activation = {"swiglu", 1.702, 1, 7, true};
        }),
        with([](auto &c) {
          c.n = 258, c.k = 2880, c.topK = 2, c.bias = c.gather = c.scatter = true;
          c.activation = {"swiglu", 1.702, 1, 7, false};
        }),
        with([](auto &c) { c.n = 10, c.activation = {"silu", 1, 0, 0, true}; }),
        with([](auto &c) { c.n = 96, c.activation = {"silu"}; }),
        with([](auto &c) { c.n = 66, c.weight = "bf16", c.k = 33, c.activation = {"gelu"}; }),
        with([](auto &c) { c.n = 64, c.weight = "f16", c.k = 40, c.activation = {"gelu_tanh"}; }),
        with([](auto &c) {
          c.n = 64, c.weight = "f32", c.k = 7, c.activation = {"relu", 1, 0, 0, true};
        }),
        with([](auto &c) { c.n = 70, c.weight = "bf16", c.activation = {"situ", 4, 2}; }),
        with([](auto &c) { c.n = 32, c.activation = {"situ", 0, 3, 0, true}; }),
        with([](auto &c) { c.n = 1, c.k = 32; }),
        with([](auto &c) { c.n = 640, c.k = 64, c.activation = {"silu"}; }), with([](auto &c) {
          c.n = 100, c.k = 64, c.target = {"cpu:x86-64-v2"}, c.activation = {"silu"};
        }),
        with([](auto &c) {
          c.n = 100, c.k = 64, c.target = {"cpu:x86-64-v4"}, c.activation = {"silu", 1, 0, 0, true};
        }),
        with([](auto &c) {
          c.n = 96, c.k = 160, c.topK = 2, c.bias = c.gather = c.scatter = true;
          c.input = c.result = "bf16", c.target = {"cpu:sapphirerapids", true};
          c.activation = {"swiglu", 1.702, 1, 7, true};
        }),
        with([](auto &c) {
          c.n = 66, c.k = 64, c.target = {"cpu:sapphirerapids", true}, c.activation = {"silu"};
        }),
        with([](auto &c) {
          c.n = 128, c.k = 96, c.topK = 4, c.gather = true, c.input = c.result = "bf16";
          c.target = {"cpu:sapphirerapids", true}, c.activation = {"situ", 25, 4};
        }),
        with([](auto &c) {
          c.weight = "bf16", c.n = 40, c.k = 70, c.target = {"cpu:sapphirerapids", true};
        })));

} // namespace
