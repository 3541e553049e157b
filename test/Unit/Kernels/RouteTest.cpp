// The routing strategy against double precision: which experts, in which order, with which weights.

#include "StrategyKernel.h"
#include "TestBuffer.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>

using namespace moec_test;

namespace {

struct RouteCase {
  const char *name;
  std::string score = "softmax";
  int64_t experts = 32, choices = 4, groups = 1, topGroups = 1;
  bool bias = false, renormalize = true;
  double scale = 1;

  std::string getText(std::string tokens) const {
    KernelText text;
    std::string e = std::to_string(experts), k = std::to_string(choices);
    text.inputs = {tensorArgument(tokens + "x" + e + "xf32")};
    if (bias)
      text.inputs.push_back(tensorArgument(e + "xf32"));
    text.outputs = {tensorArgument(tokens + "x" + k + "xf32"),
                    tensorArgument(tokens + "x" + k + "xi32")};
    char number[40];
    snprintf(number, sizeof number, "%.17e", scale);
    text.op = "%r0, %r1 = moe.route " + score + "(%0) " +
              (bias ? "bias(%1 : " + text.inputs[1].value + ") " : "") + "{top_k = " + k +
              ", groups = " + std::to_string(groups) +
              ", top_groups = " + std::to_string(topGroups) + (renormalize ? ", renormalize" : "") +
              ", scale = " + number + ", strategy = \"cpu.route\"} : " + text.inputs[0].value +
              " -> " + text.outputs[0].value + ", " + text.outputs[1].value;
    return text.print();
  }
};

void PrintTo(const RouteCase &shape, std::ostream *stream) { *stream << shape.name; }

struct Choice {
  std::vector<int32_t> experts;
  std::vector<double> weights;
};

double orLowest(double value) { return std::isnan(value) ? -INFINITY : value; }

std::vector<double> scoresOf(const RouteCase &shape, const std::vector<double> &logits) {
  std::vector<double> scores;
  double maximum = *std::max_element(logits.begin(), logits.end()), sum = 0;
  if (shape.score == "softmax" && maximum == -INFINITY)
    return std::vector<double>(logits.size(), 0.0);
  for (double x : logits)
    sum += std::exp(x - maximum);
  for (double x : logits)
    scores.push_back(shape.score == "softmax" ? std::exp(x - maximum) / sum
                     : shape.score == "sigmoid"
                         ? 1 / (1 + std::exp(-x))
                         : std::sqrt(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)))));
  return scores;
}

/// The `count` largest, equal ones in their order.
std::vector<int32_t> largest(const std::vector<double> &values, int64_t count) {
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return values[a] > values[b]; });
  order.resize(count);
  return order;
}

void leaveOutGroups(const RouteCase &shape, std::vector<double> &selection) {
  int64_t size = shape.experts / shape.groups;
  std::vector<double> groupScores;
  for (int64_t g = 0; g < shape.groups; ++g) {
    std::vector<double> group(selection.begin() + g * size, selection.begin() + (g + 1) * size);
    std::sort(group.rbegin(), group.rend());
    groupScores.push_back(orLowest(size > 1 ? group[0] + group[1] : group[0]));
  }
  std::vector<int32_t> kept = largest(groupScores, shape.topGroups);
  for (int64_t e = 0; e < shape.experts; ++e)
    if (std::find(kept.begin(), kept.end(), e / size) == kept.end())
      selection[e] = -INFINITY;
}

Choice route(const RouteCase &shape, std::vector<double> logits, const std::vector<double> &bias) {
  for (double &x : logits)
    x = orLowest(x);
  std::vector<double> scores = scoresOf(shape, logits), selection = scores;
  // A softmax has the order of its logits, which do not underflow.
  bool limits = shape.groups > 1 && shape.topGroups < shape.groups;
  if (shape.score == "softmax" && !shape.bias && !limits)
    selection = logits;
  for (int64_t e = 0; e < shape.experts; ++e)
    selection[e] = orLowest(selection[e] + (shape.bias ? bias[e] : 0));
  if (limits)
    leaveOutGroups(shape, selection);
  Choice choice;
  choice.experts = largest(selection, shape.choices);
  double sum = 0;
  for (int32_t e : choice.experts)
    sum += scores[e];
  for (int32_t e : choice.experts)
    choice.weights.push_back((shape.renormalize ? scores[e] / (sum + 1e-20) : scores[e]) *
                             shape.scale);
  return choice;
}

class RouteSweep : public testing::TestWithParam<RouteCase> {
protected:
  void SetUp() override {
    shape = GetParam();
    kernel = std::make_unique<StrategyKernel>(
        [this](std::string tokens) { return shape.getText(tokens); });
    ASSERT_TRUE(kernel->isReady()) << kernel->getError();
    bias.resize(shape.experts);
    std::normal_distribution<float> normal(0, 0.1f);
    for (float &x : bias)
      x = normal(generator);
  }

  /// Runs `logits` [tokens, experts] and compares experts and weights of every row.
  void check(std::vector<float> logits) {
    int64_t tokens = logits.size() / shape.experts;
    TestBuffer weights("f32", tokens * shape.choices);
    std::vector<int32_t> indices(tokens * shape.choices, -7);
    std::vector<Binding> bindings = {{logits.data(), {tokens}}};
    if (shape.bias)
      bindings.push_back({bias.data()});
    bindings.push_back({weights.data(), {tokens}});
    bindings.push_back({indices.data(), {tokens}});
    ASSERT_TRUE(kernel->run(tokens, bindings));
    for (int64_t t = 0; t < tokens; ++t) {
      std::vector<double> row(logits.begin() + t * shape.experts,
                              logits.begin() + (t + 1) * shape.experts);
      Choice expected = route(shape, row, {bias.begin(), bias.end()});
      for (int64_t j = 0; j < shape.choices; ++j) {
        ASSERT_EQ(indices[t * shape.choices + j], expected.experts[j])
            << "token " << t << " choice " << j;
        double weight = expected.weights[j];
        ASSERT_TRUE(std::isfinite(weight));
        ASSERT_NEAR(weights.get(t * shape.choices + j), weight, 2e-6 * std::abs(weight) + 1e-30)
            << "token " << t << " choice " << j;
      }
    }
  }

  std::vector<float> makeLogits(int64_t tokens, double scale = 2) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> logits(tokens * shape.experts);
    for (float &x : logits)
      x = normal(generator);
    return logits;
  }

  RouteCase shape;
  std::unique_ptr<StrategyKernel> kernel;
  std::mt19937 generator{3};
  std::vector<float> bias;
};

TEST_P(RouteSweep, MatchesDoublePrecision) {
  for (int64_t tokens : {1, 2, 7, 8, 9, 33})
    check(makeLogits(tokens));
}

TEST_P(RouteSweep, TiesGoToTheLowerExpert) {
  std::vector<float> logits = makeLogits(16);
  // Few different values, both zeros among them. Expressions of equal logits are equal, but a bias
  // would break ties.
  std::fill(bias.begin(), bias.end(), 0.0f);
  for (float &x : logits)
    x = std::round(x);
  for (size_t i = 0; i < logits.size(); i += 3)
    logits[i] = -logits[i];
  if (shape.groups == 1) // sums of rounded scores may order groups otherwise than exact ones
    check(logits);
  check(std::vector<float>(shape.experts, 1.5f));
}

TEST_P(RouteSweep, NaNCountsAsMinusInfinity) {
  std::vector<float> logits = makeLogits(20);
  for (float &x : logits)
    if (generator() % 10 != 0)
      x = NAN;
  // A row without a single number, and one of minus infinity.
  std::fill_n(logits.begin(), shape.experts, NAN);
  std::fill_n(logits.begin() + shape.experts, shape.experts, -INFINITY);
  check(logits);
}

TEST_P(RouteSweep, ARowOfNaNChoosesTheFirstExperts) {
  if (shape.bias)
    GTEST_SKIP() << "the bias decides";
  std::vector<float> logits(shape.experts, NAN);
  std::vector<float> weights(shape.choices);
  std::vector<int32_t> indices(shape.choices, -7);
  ASSERT_TRUE(kernel->run(1, {{logits.data(), {1}}, {weights.data(), {1}}, {indices.data(), {1}}}));
  for (int64_t j = 0; j < shape.choices; ++j) {
    EXPECT_EQ(indices[j], j);
    EXPECT_EQ(weights[j], 0);
  }
}

TEST_P(RouteSweep, LargeLogits) {
  if (shape.score == "softmax" && shape.renormalize && !shape.bias && shape.groups == 1)
    check(makeLogits(5, 1e5));
  check(makeLogits(5, 10));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RouteSweep,
    testing::Values(RouteCase{"GptOss"}, RouteCase{"Experts128", "softmax", 128, 8},
                    RouteCase{"Experts5", "softmax", 5, 2},
                    RouteCase{"AllExperts", "softmax", 7, 7}, RouteCase{"Top6", "softmax", 40, 6},
                    RouteCase{"Top18", "softmax", 96, 18}, RouteCase{"Top33", "softmax", 130, 33},
                    RouteCase{"SigmoidTop18", "sigmoid", 50, 18, 1, 1, true, true},
                    RouteCase{"GroupsTop33", "sigmoid", 160, 33, 8, 4, true, true, 2.5},
                    RouteCase{"SoftmaxOverAll", "softmax", 60, 6, 1, 1, false, false, 1.5},
                    RouteCase{"SoftmaxBias", "softmax", 60, 6, 1, 1, true, true},
                    RouteCase{"SoftmaxGroups", "softmax", 64, 6, 8, 3, false, true},
                    RouteCase{"Sigmoid", "sigmoid", 64, 8, 1, 1, true, true, 2.5},
                    RouteCase{"DeepSeek", "sigmoid", 256, 8, 8, 4, true, true, 2.5},
                    RouteCase{"Kimi", "sigmoid", 896, 16, 1, 1, true, true},
                    RouteCase{"Top1", "sigmoid", 16, 1, 1, 1, false, false},
                    RouteCase{"SmallGroups", "sigmoid", 24, 3, 8, 4, true, true},
                    RouteCase{"GroupsOfOne", "sigmoid", 9, 2, 9, 3, true, false},
                    RouteCase{"OddGroups", "sigmoid", 66, 4, 6, 2, true, true},
                    RouteCase{"AllGroups", "sigmoid", 32, 4, 4, 4, true, true},
                    RouteCase{"SqrtSoftplus", "sqrt_softplus", 256, 6, 1, 1, true, true, 1.5}),
    [](const auto &info) { return std::string(info.param.name); });

} // namespace
