// Elementary functions in kernels, over samples of all f32, against the C library in double
// precision.

#include "test/Unit/KernelHarness.h"

#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

using namespace moec_test;

namespace {

std::string unaryKernel(const std::string &op) {
  return llvm::formatv(R"(
    func.func @f(%x: memref<?xf32>, %out: memref<?xf32>, %scratch: memref<?xi8>, %workgroup: index)
        attributes {{plan.kernel} {{
      %a = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
      %y = {0} %a : tensor<?xf32>
      bufferization.materialize_in_destination %y in restrict writable %out : (tensor<?xf32>, memref<?xf32>) -> ()
      return
    })",
                       op)
      .str();
}

/// |value - reference| in units of the last place of the f32 nearest to the reference.
double unitsInLastPlace(float value, double reference) {
  if (std::isnan(reference))
    return std::isnan(value) ? 0 : std::numeric_limits<double>::infinity();
  float nearest = static_cast<float>(reference);
  if (value == nearest)
    return 0;
  if (std::isinf(nearest) || !std::isfinite(value))
    return std::numeric_limits<double>::infinity();
  int exponent;
  std::frexp(reference, &exponent);
  double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::abs(value - reference) / unit;
}

struct Function {
  const char *op;
  double (*reference)(double);
  double tolerance; // in units in the last place
  float largest = std::numeric_limits<float>::infinity();
};

class UnaryMath : public testing::TestWithParam<std::tuple<Function, const char *>> {};

TEST_P(UnaryMath, IsAccurateEverywhere) {
  auto [function, target] = GetParam();
  if (!canRun(target))
    GTEST_SKIP() << "this machine cannot run code for " << target;
  KernelHarness harness(unaryKernel(function.op), target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();

  std::vector<float> x = {0.0f,
                          -0.0f,
                          1.0f,
                          -1.0f,
                          0.5f,
                          std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()};
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 9973)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  // Where functions are used: dense around zero.
  for (int i = -40000; i <= 40000; ++i)
    x.push_back(i * 0.00237f);
  std::vector<float> out(x.size());
  int64_t count = x.size();
  ASSERT_TRUE(harness.run("f", {{x.data(), {count}}, {out.data(), {count}}}));

  double worst = 0;
  float worstAt = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::abs(x[i]) > function.largest)
      continue;
    double error = unitsInLastPlace(out[i], function.reference(x[i]));
    if (error > worst) {
      worst = error;
      worstAt = x[i];
    }
  }
  RecordProperty("worst", std::to_string(worst));
  printf("%s on %s: %.3f units in the last place at %g\n", function.op, target, worst, worstAt);
  EXPECT_LE(worst, function.tolerance) << function.op << " of " << worstAt;
}

double rsqrt(double x) { return 1 / std::sqrt(x); }

constexpr float angleLimit = 0x1p29f;

INSTANTIATE_TEST_SUITE_P(
    Functions, UnaryMath,
    testing::Combine(
        testing::Values(
            Function{"math.exp", std::exp, 1.1}, Function{"math.log", std::log, 1.1},
            Function{"math.tanh", std::tanh, 2.0}, Function{"math.erf", std::erf, 2.0},
            Function{"math.sin", std::sin, 1.5, angleLimit},
            Function{"math.cos", std::cos, 1.5, angleLimit}, Function{"math.rsqrt", rsqrt, 1.5},
            Function{"math.sqrt", std::sqrt, 0.5}, Function{"math.exp2", std::exp2, 0.6},
            Function{"math.expm1", std::expm1, 0.6}, Function{"math.log1p", std::log1p, 0.6},
            Function{"math.log2", std::log2, 0.6}, Function{"math.log10", std::log10, 0.6}),
        testing::Values("cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4")));

TEST(PowerFunction, TreatsSpecialValuesLikeTheCLibrary) {
  KernelHarness harness(R"(
    func.func @power(%x: memref<?xf32>, %y: memref<?xf32>, %out: memref<?xf32>, %scratch: memref<?xi8>, %workgroup: index)
        attributes {plan.kernel} {
      %a = bufferization.to_tensor %x restrict : memref<?xf32> to tensor<?xf32>
      %b = bufferization.to_tensor %y restrict : memref<?xf32> to tensor<?xf32>
      %p = math.powf %a, %b : tensor<?xf32>
      bufferization.materialize_in_destination %p in restrict writable %out : (tensor<?xf32>, memref<?xf32>) -> ()
      return
    })",
                        "cpu");
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {
      0.0f, -0.0f, 1.0f,        -1.0f,  0.5f,  -0.5f,  2.0f,     -2.0f,     3.0f,         -3.0f,
      1.5f, -1.5f, 16777216.0f, 1e-40f, 1e38f, -1e38f, infinity, -infinity, std::nanf("")};
  for (int i = 0; i < 200; ++i)
    values.push_back(std::exp((i - 100) * 0.3f));
  std::vector<float> x, y;
  for (float a : values)
    for (float b : values) {
      x.push_back(a);
      y.push_back(b);
    }
  std::vector<float> out(x.size());
  int64_t count = x.size();
  ASSERT_TRUE(
      harness.run("power", {{x.data(), {count}}, {y.data(), {count}}, {out.data(), {count}}}));
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_LE(unitsInLastPlace(out[i], std::pow(double(x[i]), double(y[i]))), 0.6)
        << x[i] << " ^ " << y[i] << " gave " << out[i];
}

} // namespace
