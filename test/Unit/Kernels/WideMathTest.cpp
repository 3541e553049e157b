// Elementary functions on f64 against long double, and remainders against the C library.

#include "test/Unit/Kernels/GenericKernel.h"

#include "gtest/gtest.h"

#include <limits>

using namespace moec_test;

namespace {

/// |value - reference| in units of the last place of the double nearest to the reference.
double unitsInLastPlace(double value, long double reference) {
  if (std::isnan(reference))
    return std::isnan(value) ? 0 : INFINITY;
  double nearest = static_cast<double>(reference);
  if (value == nearest)
    return std::signbit(value) == std::signbit(nearest) ? 0 : INFINITY;
  if (std::isinf(nearest) || !std::isfinite(value))
    return INFINITY;
  int exponent = std::max(std::ilogb(nearest == 0 ? value : nearest), -1022);
  return static_cast<double>(std::abs(value - reference) / std::ldexp(1.0L, exponent - 52));
}

struct Function {
  const char *op;
  long double (*reference)(long double);
  double tolerance, largest = INFINITY;
};

void PrintTo(const Function &function, std::ostream *stream) { *stream << function.op; }

class WideMath : public testing::TestWithParam<std::tuple<Function, const char *>> {};

TEST_P(WideMath, IsAccurateEverywhere) {
  auto [function, target] = GetParam();
  if (!canRun(target))
    GTEST_SKIP() << "this machine cannot run code for " << target;
  KernelHarness harness(genericKernel({"?xf64"}, {"?xf64"},
                                      std::string("%o0 = ") + function.op + " %i0 : tensor<?xf64>"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  std::vector<double> x = {0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 5.9, INFINITY, -INFINITY, NAN, 5e-324};
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i)
    x.push_back(std::bit_cast<double>(random()));
  for (int i = -50'000; i <= 50'000; ++i)
    x.push_back(i * 0.000237);
  for (int i = -20'000; i <= 20'000; ++i)
    x.push_back(i * 1.57);
  std::vector<double> out(x.size());
  int64_t count = x.size();
  ASSERT_TRUE(harness.run("kernel", {{x.data(), {count}}, {out.data(), {count}}}));
  double worst = 0, worstAt = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::abs(x[i]) > function.largest)
      continue;
    double error = unitsInLastPlace(out[i], function.reference(x[i]));
    if (error > worst)
      worst = error, worstAt = x[i];
  }
  printf("%s on %s: %.3f units in the last place at %g\n", function.op, target, worst, worstAt);
  EXPECT_LE(worst, function.tolerance) << function.op << " of " << worstAt;
}

long double rsqrtl(long double x) { return 1 / sqrtl(x); }

INSTANTIATE_TEST_SUITE_P(
    Functions, WideMath,
    testing::Combine(testing::Values(Function{"math.exp", expl, 1.5},
                                     Function{"math.log", logl, 1.5},
                                     Function{"math.tanh", tanhl, 4}, Function{"math.erf", erfl, 4},
                                     Function{"math.sin", sinl, 2, 0x1p29},
                                     Function{"math.cos", cosl, 2, 0x1p29},
                                     Function{"math.sqrt", sqrtl, 0.5},
                                     Function{"math.rsqrt", rsqrtl, 1.5}),
                     testing::Values("cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4")));

TEST(WideMathRefused, NamesTheFunction) {
  KernelHarness harness(
      genericKernel({"?xf64"}, {"?xf64"}, "%o0 = math.powf %i0, %i0 : tensor<?xf64>"), "cpu");
  EXPECT_FALSE(harness.isReady());
  EXPECT_NE(harness.getError().find("'math.powf' on"), std::string::npos) << harness.getError();
}

/// x mod y for all pairs of special values and of numbers of any size.
template <typename T>
void checkRemainders(const std::string &type, const char *target) {
  if (!canRun(target))
    return;
  KernelHarness harness(genericKernel({"?x" + type, "?x" + type}, {"?x" + type},
                                      "%o0 = arith.remf %i0, %i1 : tensor<?x" + type + ">"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {T(0),
                           T(1),
                           T(3),
                           T(0.1),
                           T(1.5),
                           Limits::min(),
                           Limits::max(),
                           Limits::denorm_min(),
                           Limits::infinity(),
                           Limits::quiet_NaN(),
                           Limits::min() / 2 + Limits::denorm_min()};
  std::mt19937_64 random(1);
  for (int i = 0; i < 60; ++i)
    values.push_back(std::ldexp(T(random() | 1), int(random() % 200) - 160));
  for (size_t i = values.size(); i-- > 0;)
    values.push_back(-values[i]);
  std::vector<T> x, y;
  for (T a : values)
    for (T b : values)
      x.push_back(a), y.push_back(b);
  std::vector<T> out(x.size());
  int64_t count = x.size();
  ASSERT_TRUE(
      harness.run("kernel", {{x.data(), {count}}, {y.data(), {count}}, {out.data(), {count}}}));
  for (int64_t i = 0; i < count; ++i) {
    T expected = std::fmod(x[i], y[i]);
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(out[i])) << x[i] << " mod " << y[i];
    else
      ASSERT_TRUE(out[i] == expected && std::signbit(out[i]) == std::signbit(expected))
          << x[i] << " mod " << y[i] << " gave " << out[i] << ", expected " << expected;
  }
}

TEST(Remainder, IsExact) {
  for (const char *target : {"cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4"}) {
    checkRemainders<float>("f32", target);
    checkRemainders<double>("f64", target);
  }
}

/// Every pair of two thousand f16 numbers, all kinds among them.
TEST(Remainder, IsExactInF16) {
  for (const char *target : {"cpu:x86-64-v2", "cpu"}) {
    KernelHarness harness(
        genericKernel({"?xf16", "?xf16"}, {"?xf16"}, "%o0 = arith.remf %i0, %i1 : tensor<?xf16>"),
        target);
    ASSERT_TRUE(harness.isReady()) << harness.getError();
    std::vector<_Float16> x, y;
    for (uint32_t a = 0; a < 0x10000; a += 331)
      for (uint32_t b = 0; b < 0x10000; b += 331) {
        x.push_back(std::bit_cast<_Float16>(static_cast<uint16_t>(a)));
        y.push_back(std::bit_cast<_Float16>(static_cast<uint16_t>(b)));
      }
    std::vector<_Float16> out(x.size());
    int64_t count = x.size();
    ASSERT_TRUE(
        harness.run("kernel", {{x.data(), {count}}, {y.data(), {count}}, {out.data(), {count}}}));
    for (int64_t i = 0; i < count; ++i) {
      float expected = std::fmod(float(x[i]), float(y[i]));
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(float(out[i]))) << float(x[i]) << " mod " << float(y[i]);
      else
        ASSERT_EQ(float(out[i]), expected) << float(x[i]) << " mod " << float(y[i]);
    }
  }
}

} // namespace
