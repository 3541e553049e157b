// The linear strategies against double precision, and their bits against themselves with other
// tokens.

#include "ProductCase.h"

#include "gtest/gtest.h"

using namespace moec_test;

namespace {

struct LinearCase {
  std::string weight = "bf16", input = "f32", result = "f32";
  int64_t n = 64, k = 64;
  bool bias = false, residual = false, norm = false;
  TestTarget target;
};

constexpr double epsilon = 1e-5;

class LinearProblem {
public:
  explicit LinearProblem(const LinearCase &shape, bool batchInvariant = false)
      : shape(shape), generator(11), weight(shape.weight, 0, shape.n, shape.k, generator),
        bias("bf16", shape.n), normWeight("f32", shape.k), packed(weight.pack()),
        kernel([this](std::string tokens) { return makeText(tokens); }, shape.target.name,
               shape.target.getOptions(batchInvariant)) {
    bias.fillRandom(generator);
    normWeight.fillRandom(generator);
  }

  void setTokens(int64_t count, double scale = 1) {
    tokens = count;
    input = TestBuffer(shape.input, tokens * shape.k);
    residual = TestBuffer(shape.result, tokens * shape.n);
    input.fillRandom(generator, scale);
    residual.fillRandom(generator);
  }

  GuardedResult run(int64_t first, int64_t count) {
    GuardedResult result(shape.result, count * shape.n);
    auto *inputs = static_cast<std::byte *>(input.data()) + first * shape.k * input.getWidth();
    auto *residuals =
        static_cast<std::byte *>(residual.data()) + first * shape.n * residual.getWidth();
    std::vector<Binding> bindings = {{inputs, {count}}, {packed.data()}};
    if (shape.bias)
      bindings.push_back({bias.data()});
    if (shape.residual)
      bindings.push_back({residuals, {count}});
    if (shape.norm)
      bindings.push_back({normWeight.data()});
    bindings.push_back({result.buffer.data(), {count}});
    Unchanged unchanged{&input, &residual, &bias, &normWeight};
    EXPECT_TRUE(kernel.run(count, bindings));
    EXPECT_TRUE(result.isGuardIntact());
    return result;
  }

  void check(const GuardedResult &result) {
    for (int64_t t = 0; t < tokens; ++t) {
      std::vector<double> row = makeRow(t);
      for (int64_t n = 0; n < shape.n; ++n) {
        double want = 0, magnitude = 0, largest = 0;
        auto addTerm = [&](double term) {
          want += term;
          magnitude += std::abs(term);
          largest = std::max(largest, std::abs(term));
        };
        for (int64_t k = 0; k < shape.k; ++k)
          addTerm(row[k] * weight.get(0, n, k));
        double tolerance = (32 + shape.k / 32 + 4) * 0x1p-24 * magnitude;
        if (weight.isMXFP4() && shape.input == "bf16")
          tolerance += weight.getIntegerTolerance(0, n, row);
        // The root in f32, and now and then a row element on the other side of a tie.
        if (shape.norm)
          tolerance += 32 * 0x1p-24 * magnitude + (shape.input == "f32" ? 0 : 2 * 0x1p-8 * largest);
        if (shape.bias)
          addTerm(bias.get(n));
        if (shape.residual)
          addTerm(residual.get(t * shape.n + n));
        tolerance +=
            4 * 0x1p-24 * magnitude + 16 * 0x1p-149 + result.buffer.getEpsilon() * std::abs(want);
        double got = result.buffer.get(t * shape.n + n);
        if (std::isnan(want))
          ASSERT_TRUE(std::isnan(got)) << "token " << t << " of " << tokens << ", row " << n;
        else
          ASSERT_NEAR(got, want, tolerance) << "token " << t << " of " << tokens << ", row " << n;
      }
    }
  }

  TestWeight &getWeight() { return weight; }
  void repack() { packed = weight.pack(); }
  const StrategyKernel &getKernel() const { return kernel; }

private:
  std::vector<double> makeRow(int64_t t) {
    std::vector<double> row(shape.k);
    double squares = 0;
    for (int64_t k = 0; k < shape.k; ++k) {
      row[k] = input.get(t * shape.k + k);
      squares += row[k] * row[k];
    }
    if (!shape.norm)
      return row;
    TestBuffer rounded(shape.input, shape.k);
    for (int64_t k = 0; k < shape.k; ++k)
      rounded.set(k, row[k] / std::sqrt(squares / shape.k + epsilon) * normWeight.get(k));
    for (int64_t k = 0; k < shape.k; ++k)
      row[k] = rounded.get(k);
    return row;
  }

  std::string makeText(std::string count) {
    auto rows = [&](int64_t columns, std::string type) {
      return tensorArgument(count + "x" + std::to_string(columns) + "x" + type);
    };
    KernelText text;
    text.inputs = {rows(shape.k, shape.input), {weight.getStorageType(), weight.getPackedType()}};
    std::string extra;
    auto add = [&](std::string what, KernelText::Argument argument) {
      extra +=
          " " + what + "(%" + std::to_string(text.inputs.size()) + " : " + argument.value + ")";
      text.inputs.push_back(argument);
    };
    if (shape.bias)
      add("bias", tensorArgument(std::to_string(shape.n) + "xbf16"));
    if (shape.residual)
      add("residual", rows(shape.n, shape.result));
    if (shape.norm)
      add("norm", tensorArgument(std::to_string(shape.k) + "xf32"));
    text.outputs = {rows(shape.n, shape.result)};
    text.op = "%r0 = moe.linear %0, %1" + extra + " {strategy = \"" +
              shape.target.getStrategy("linear") + "\"" + (shape.norm ? ", epsilon = 1.0e-5" : "") +
              "} : " + text.inputs[0].value + ", " + weight.getPackedType() + " -> " +
              text.outputs[0].value;
    return text.print();
  }

  LinearCase shape;
  std::mt19937 generator;
  TestWeight weight;
  TestBuffer bias, normWeight;
  std::vector<std::byte> packed;
  TestBuffer input{"f32", 0}, residual{"f32", 0};
  int64_t tokens = 0;
  StrategyKernel kernel;
};

class LinearSweep : public testing::TestWithParam<LinearCase> {};

TEST_P(LinearSweep, MatchesDoublePrecision) {
  LinearProblem problem(GetParam());
  ASSERT_TRUE(problem.getKernel().isReady()) << problem.getKernel().getError();
  for (int64_t tokens : {0, 1, 2, 3, 4, 5, 17, 64, 103}) {
    problem.setTokens(tokens);
    problem.check(problem.run(0, tokens));
  }
}

TEST_P(LinearSweep, BitsOfATokenDoNotDependOnOthers) {
  if (GetParam().target.matrixUnit)
    GTEST_SKIP() << "many tokens go to the matrix unit, few do not";
  LinearProblem problem(GetParam(), /*batchInvariant=*/true);
  ASSERT_TRUE(problem.getKernel().isReady()) << problem.getKernel().getError();
  problem.setTokens(23);
  GuardedResult all = problem.run(0, 23);
  int64_t rowBytes = GetParam().n * all.buffer.getWidth();
  for (int64_t t = 0, count = 1; t + count <= 23; t += count, ++count) {
    GuardedResult some = problem.run(t, count);
    EXPECT_EQ(0, std::memcmp(some.buffer.data(),
                             static_cast<std::byte *>(all.buffer.data()) + t * rowBytes,
                             count * rowBytes))
        << count << " tokens from " << t;
  }
}

LinearCase with(std::function<void(LinearCase &)> change) {
  LinearCase shape;
  change(shape);
  return shape;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, LinearSweep,
    testing::Values(
        with([](auto &c) {}), with([](auto &c) { c.weight = "f32"; }),
        with([](auto &c) { c.weight = "f16", c.n = 258, c.k = 45; }),
        with([](auto &c) { c.weight = "mxfp4", c.n = 320, c.k = 160; }),
        with([](auto &c) { c.weight = "mxfp4", c.n = 258, c.k = 2880, c.bias = true; }),
        with([](auto &c) { c.weight = "mxfp4", c.n = 100, c.k = 320, c.input = "bf16"; }),
        with([](auto &c) { c.n = 1, c.k = 33, c.bias = c.residual = true; }),
        with([](auto &c) { c.n = 16, c.k = 2880, c.input = c.result = "bf16"; }),
        with([](auto &c) { c.n = 1000, c.k = 256, c.bias = c.residual = c.norm = true; }),
        with([](auto &c) {
          c.n = 40, c.k = 71, c.input = c.result = "bf16", c.residual = c.norm = true;
        }),
        with([](auto &c) { c.input = "f16", c.result = "f16", c.n = 24; }),
        with([](auto &c) { c.weight = "f32", c.n = 30, c.k = 7, c.target = {"cpu:x86-64-v2"}; }),
        with([](auto &c) { c.weight = "mxfp4", c.n = 50, c.k = 96, c.target = {"cpu:x86-64-v2"}; }),
        with([](auto &c) { c.weight = "mxfp4", c.n = 50, c.k = 96, c.target = {"cpu:x86-64-v3"}; }),
        with([](auto &c) { c.n = 100, c.k = 96, c.target = {"cpu:x86-64-v4"}; }), with([](auto &c) {
          c.weight = "mxfp4", c.n = 100, c.k = 96, c.target = {"cpu:x86-64-v4"};
        })));

class ScaleTest : public testing::TestWithParam<TestTarget> {};

TEST_P(ScaleTest, EveryScaleByteIsExact) {
  LinearProblem problem(
      with([&](auto &c) { c.weight = "mxfp4", c.n = 64, c.k = 256, c.target = GetParam(); }));
  uint8_t special[] = {1, 2, 3, 253, 254};
  for (int64_t n = 0; n < 64; ++n)
    for (int64_t block = 0; block < 8; ++block)
      problem.getWeight().setScale(0, n, block, n < 59 ? 4 * n : special[n - 59]);
  problem.getWeight().setScale(0, 40, 5, 255);
  problem.repack();
  ASSERT_TRUE(problem.getKernel().isReady()) << problem.getKernel().getError();
  for (int64_t tokens : {1, 9}) {
    problem.setTokens(tokens, 0x1p-10);
    problem.check(problem.run(0, tokens));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ScaleTest,
                         testing::Values(TestTarget{"cpu"}, TestTarget{"cpu:x86-64-v2"},
                                         TestTarget{"cpu:x86-64-v3"}, TestTarget{"cpu:x86-64-v4"},
                                         TestTarget{"cpu:sapphirerapids", true}));

} // namespace
