// f16 in generic kernels, with instructions for its conversions and without.

#include "test/Unit/Kernels/GenericKernel.h"

#include "gtest/gtest.h"

using namespace moec_test;

namespace {

class HalfConversion : public testing::TestWithParam<const char *> {};

/// The bits of a number; NaN only has to stay NaN.
uint32_t bitsOf(float value) {
  return std::isnan(value) ? 0x7fc00000 : std::bit_cast<uint32_t>(value);
}

TEST_P(HalfConversion, ExtendsEveryNumber) {
  KernelHarness harness(
      genericKernel({"?xf16"}, {"?xf32"}, "%o0 = arith.extf %i0 : tensor<?xf16> to tensor<?xf32>"),
      GetParam());
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  int64_t count = 0x10000;
  std::vector<uint16_t> x(count);
  std::vector<float> out(count);
  for (int64_t i = 0; i < count; ++i)
    x[i] = static_cast<uint16_t>(i);
  ASSERT_TRUE(harness.run("kernel", {{x.data(), {count}}, {out.data(), {count}}}));
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(bitsOf(out[i]), bitsOf(static_cast<float>(std::bit_cast<_Float16>(x[i])))) << i;
}

TEST_P(HalfConversion, RoundsToNearestEven) {
  KernelHarness harness(genericKernel({"?xf32"}, {"?xf16"},
                                      "%o0 = arith.truncf %i0 : tensor<?xf32> to tensor<?xf16>"),
                        GetParam());
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  std::vector<float> x = {0.0f,     -0.0f,    INFINITY, -INFINITY, NAN,   65504.0f, 65519.0f,
                          65520.0f, 65536.0f, 1e30f,    -1e30f,    1e-8f, 1e-45f};
  // Every f16, the middles between neighbours, and what is just beside them.
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float number = static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits)));
    float next = static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(bits + 1)));
    float middle = number + (next - number) / 2;
    for (float value :
         {number, middle, std::nextafter(middle, INFINITY), std::nextafter(middle, -INFINITY)})
      x.push_back(value);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  int64_t count = x.size();
  std::vector<_Float16> out(count);
  ASSERT_TRUE(harness.run("kernel", {{x.data(), {count}}, {out.data(), {count}}}));
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(bitsOf(out[i]), bitsOf(static_cast<_Float16>(x[i]))) << x[i];
}

TEST_P(HalfConversion, ArithmeticRoundsOnce) {
  KernelHarness harness(genericKernel({"?x7xf16", "?x7xf16"}, {"?x7xf16"}, R"(
    %p = arith.mulf %i0, %i1 : tensor<?x7xf16>
    %o0 = math.exp %p : tensor<?x7xf16>)"),
                        GetParam());
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  int64_t rows = 5;
  std::vector<_Float16> x(7 * rows), y(7 * rows), out(7 * rows);
  Random random;
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = random.next(), y[i] = random.next();
  ASSERT_TRUE(
      harness.run("kernel", {{x.data(), {rows}}, {y.data(), {rows}}, {out.data(), {rows}}}));
  for (size_t i = 0; i < x.size(); ++i) {
    _Float16 product = static_cast<_Float16>(float(x[i]) * float(y[i]));
    EXPECT_EQ(float(out[i]), float(static_cast<_Float16>(std::exp(float(product)))));
  }
}

/// The bf16 nearest to a number that is not subnormal there.
float nearestBF16(double value) {
  if (!std::isfinite(value) || std::abs(value) < 0x1p-140)
    return static_cast<float>(value);
  int exponent;
  double mantissa = std::frexp(value, &exponent); // of which 8 bits stay
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8));
}

/// f64 beside the ties of f16 and bf16, nearer to them than f32 can tell.
TEST_P(HalfConversion, RoundsWideNumbersOnce) {
  KernelHarness harness(genericKernel({"?xf64"}, {"?xf16", "?xbf16", "?xf64"}, R"(
    %o0 = arith.truncf %i0 : tensor<?xf64> to tensor<?xf16>
    %o1 = arith.truncf %i0 : tensor<?xf64> to tensor<?xbf16>
    %o2 = arith.extf %o0 : tensor<?xf16> to tensor<?xf64>)"),
                        GetParam());
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  std::vector<double> x = {0.0, -0.0, 1e300, -1e300, 1e-300, INFINITY, -INFINITY, NAN, 0x1p-25};
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    // A tie of f16, and one of bf16.
    double half = std::ldexp(2049 + 2 * (random() % 1024), int(random() % 40) - 36);
    double wide = std::ldexp(257 + 2 * (random() % 128), int(random() % 200) - 100);
    for (double tie : {half, wide})
      for (double value : {tie, std::nextafter(tie, INFINITY), std::nextafter(tie, 0.0)})
        x.push_back(random() % 2 ? value : -value);
  }
  int64_t count = x.size();
  std::vector<_Float16> halves(count);
  std::vector<uint16_t> narrow(count);
  std::vector<double> back(count);
  ASSERT_TRUE(harness.run("kernel", {{x.data(), {count}},
                                     {halves.data(), {count}},
                                     {narrow.data(), {count}},
                                     {back.data(), {count}}}));
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_EQ(bitsOf(halves[i]), bitsOf(static_cast<_Float16>(x[i]))) << x[i];
    ASSERT_EQ(bitsOf(fromBF16(narrow[i])), bitsOf(nearestBF16(x[i]))) << x[i];
    ASSERT_EQ(bitsOf(static_cast<float>(back[i])), bitsOf(halves[i])) << x[i];
  }
}

TEST_P(HalfConversion, ConvertsIntegers) {
  KernelHarness harness(genericKernel({"?xi32", "?xf16"}, {"?xf16", "?xi32"}, R"(
    %o0 = arith.sitofp %i0 : tensor<?xi32> to tensor<?xf16>
    %o1 = arith.fptosi %i1 : tensor<?xf16> to tensor<?xi32>)"),
                        GetParam());
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  std::vector<int32_t> x = {0, 1, -1, 2049, 2051, -4098, 65504, 65519, 65520, -70000, INT32_MAX};
  int64_t count = x.size();
  std::vector<_Float16> halves, out(count);
  for (int64_t i = 0; i < count; ++i)
    halves.push_back(static_cast<_Float16>(i * 1234.7f - 5000));
  std::vector<int32_t> integers(count);
  ASSERT_TRUE(harness.run("kernel", {{x.data(), {count}},
                                     {halves.data(), {count}},
                                     {out.data(), {count}},
                                     {integers.data(), {count}}}));
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_EQ(float(out[i]), float(static_cast<_Float16>(static_cast<float>(x[i])))) << x[i];
    EXPECT_EQ(integers[i], static_cast<int32_t>(halves[i])) << float(halves[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, HalfConversion, testing::Values("cpu:x86-64-v2", "cpu"),
                         [](const auto &info) {
                           return std::string(info.index == 0 ? "Integers" : "Instructions");
                         });

} // namespace
