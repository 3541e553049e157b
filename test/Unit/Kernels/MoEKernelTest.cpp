// moe ops without a strategy, compiled and compared with their definition in double precision.

#include "GenericKernel.h"

#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <limits>

using namespace moec_test;

namespace {

const char *const target = "cpu";

class Norms : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(Norms, MatchTheirDefinition) {
  auto [type, width] = GetParam();
  std::string tensor = llvm::formatv("?x{0}x{1}", width, type),
              row = llvm::formatv("{0}x{1}", width, type);
  struct Case {
    bool layer, weight, bias, unitOffset;
  };
  for (Case c : {Case{false, true, false, false}, Case{false, true, false, true},
                 Case{false, false, false, false}, Case{true, true, true, false},
                 Case{true, true, false, false}, Case{true, false, false, false}}) {
    std::string body = "%o0 = moe." + std::string(c.layer ? "layer_norm" : "rms_norm") + " %i0";
    if (c.weight)
      body += " weight(%i1 : tensor<" + row + ">)";
    if (c.bias)
      body += " bias(%i2 : tensor<" + row + ">)";
    body += std::string(" {epsilon = 1.0e-6 : f64") + (c.unitOffset ? ", unit_offset" : "") +
            "} : tensor<" + tensor + ">";
    KernelHarness harness(genericKernel({tensor, row, row}, {tensor}, body, "2"), target);
    ASSERT_TRUE(harness.isReady()) << harness.getError();

    int64_t rows = 5;
    FloatBuffer x(type, rows * width), weight(type, width), bias(type, width),
        out(type, rows * width);
    Random random;
    x.randomize(random);
    weight.randomize(random);
    bias.randomize(random);
    ASSERT_TRUE(
        harness.run("kernel", {x.bind({rows}), weight.bind(), bias.bind(), out.bind({rows})}, 3));
    EXPECT_TRUE(out.isIntact());
    for (int64_t r = 0; r < rows; ++r) {
      double mean = 0, magnitude = 0, square = 0;
      for (int i = 0; c.layer && i < width; ++i) {
        mean += x.get(r * width + i) / double(width);
        magnitude += std::abs(x.get(r * width + i)) / double(width);
      }
      for (int i = 0; i < width; ++i)
        square += std::pow(x.get(r * width + i) - mean, 2.0) / width;
      for (int i = 0; i < width; ++i) {
        double factor = c.weight ? weight.get(i) + (c.unitOffset ? 1.0 : 0.0) : 1.0;
        double expected = (x.get(r * width + i) - mean) / std::sqrt(square + 1e-6) * factor;
        // Differences of close numbers keep the error of the larger ones, and a mean that cancels
        // that of what was added up.
        double scale = (std::abs(x.get(r * width + i)) + magnitude) /
                       std::sqrt(square + 1e-6) * std::abs(factor);
        if (c.bias) {
          expected += bias.get(i);
          scale += std::abs(bias.get(i));
        }
        ASSERT_NEAR(out.get(r * width + i), expected, toleranceOf(type) * (scale + 1e-3))
            << body << " row " << r << " column " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, Norms,
                         testing::Combine(testing::Values("f32", "bf16"),
                                          testing::Values(1, 5, 16, 31, 64, 100, 129, 2880)));

struct Rotation {
  int heads, dim, pairs, offset;
  bool interleaved;
};

class Rope : public testing::TestWithParam<std::tuple<std::string, Rotation>> {};

TEST_P(Rope, RotatesPairsByTheirAngles) {
  auto [type, rotation] = GetParam();
  std::vector<float> frequencies;
  std::string list;
  for (int i = 0; i < rotation.pairs; ++i) {
    frequencies.push_back(std::pow(10000.0f, -float(i) / rotation.pairs));
    list += (i ? ", " : "") + llvm::formatv("{0:e8}", frequencies.back()).str();
    frequencies.back() = std::stof(llvm::formatv("{0:e8}", frequencies.back()).str());
  }
  std::string tensor = llvm::formatv("?x{0}x{1}x{2}", rotation.heads, rotation.dim, type);
  std::string body =
      llvm::formatv("%o0 = moe.rope %i0 at %i1 <[{0}], magnitude = 1.25, offset = {1}{2}> : "
                    "tensor<{3}>, tensor<?xi32>",
                    list, rotation.offset, rotation.interleaved ? ", interleaved" : "", tensor);
  KernelHarness harness(genericKernel({tensor, "?xi32"}, {tensor}, body, "1"), target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();

  std::vector<int32_t> positionList = {0, 1, 17, 4095, 131071, 999999};
  int64_t tokens = positionList.size();
  Guarded<int32_t> positions(tokens);
  size_t count = tokens * rotation.heads * rotation.dim;
  FloatBuffer x(type, count), out(type, count);
  Random random;
  x.randomize(random);
  for (int64_t t = 0; t < tokens; ++t)
    positions[t] = positionList[t];
  ASSERT_TRUE(harness.run(
      "kernel", {x.bind({tokens}), positions.bind({tokens}), out.bind({tokens})}, tokens));
  EXPECT_TRUE(out.isIntact());
  for (int64_t t = 0; t < tokens; ++t)
    for (int h = 0; h < rotation.heads; ++h) {
      size_t base = (t * rotation.heads + h) * rotation.dim;
      std::vector<double> expected(rotation.dim);
      for (int i = 0; i < rotation.dim; ++i)
        expected[i] = x.get(base + i);
      for (int i = 0; i < rotation.pairs; ++i) {
        int first = rotation.offset + (rotation.interleaved ? 2 * i : i);
        int second = rotation.interleaved ? first + 1 : first + rotation.pairs;
        float angle = float(positions[t]) * frequencies[i];
        double c = 1.25 * std::cos(double(angle)), s = 1.25 * std::sin(double(angle));
        double a = x.get(base + first), b = x.get(base + second);
        expected[first] = a * c - b * s;
        expected[second] = b * c + a * s;
      }
      for (int i = 0; i < rotation.dim; ++i)
        ASSERT_NEAR(out.get(base + i), expected[i], toleranceOf(type) * (std::abs(expected[i]) + 1))
            << "token " << t << " element " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Variants, Rope,
    testing::Combine(testing::Values("f32", "bf16"),
                     testing::Values(Rotation{6, 64, 32, 0, false}, Rotation{2, 64, 32, 0, true},
                                     Rotation{1, 10, 5, 0, false}, Rotation{3, 24, 8, 8, false},
                                     Rotation{3, 24, 4, 5, true}, Rotation{2, 128, 20, 0, false})));

TEST(MoEKernel, SelectsRowsAndClampsThem) {
  for (const char *op : {"embedding", "gather_rows"}) {
    bool isEmbedding = std::string(op) == "embedding";
    std::string table = "9x33xbf16", result = isEmbedding ? "?x33xf32" : "?x33xbf16";
    std::string body =
        isEmbedding
            ? "%o0 = moe.embedding %i0, %i1 : tensor<?xi32>, tensor<9x33xbf16> -> tensor<?x33xf32>"
            : "%o0 = moe.gather_rows %i1, %i0 : tensor<9x33xbf16>, tensor<?xi32> -> "
              "tensor<?x33xbf16>";
    KernelHarness harness(genericKernel({"?xi32", table}, {result}, body, "4"), target);
    ASSERT_TRUE(harness.isReady()) << harness.getError();
    std::vector<int32_t> rows = {3, 8, 0, 100, -4};
    Guarded<int32_t> ids(5);
    FloatBuffer data("bf16", 9 * 33), out(isEmbedding ? "f32" : "bf16", 5 * 33);
    Random random;
    data.randomize(random);
    for (int i = 0; i < 5; ++i)
      ids[i] = rows[i];
    ASSERT_TRUE(harness.run("kernel", {ids.bind({5}), data.bind(), out.bind({5})}, 2));
    EXPECT_TRUE(out.isIntact());
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 33; ++j)
        ASSERT_EQ(out.get(i * 33 + j), data.get(std::clamp(rows[i], 0, 8) * 33 + j));
  }
}

TEST(MoEKernel, CombinesExperts) {
  for (std::string type : {"f32", "bf16"})
    for (bool residual : {false, true}) {
      std::string tensor = "?x50x" + type;
      std::string body =
          llvm::formatv("%o0 = moe.combine %i0, %i1, %i2{0} : tensor<{1}>, tensor<?x3xf32>, "
                        "tensor<?x3xi32> -> tensor<{1}>",
                        residual ? " residual(%i3 : tensor<" + tensor + ">)" : "", tensor);
      KernelHarness harness(
          genericKernel({tensor, "?x3xf32", "?x3xi32", tensor}, {tensor}, body, "2"), target);
      ASSERT_TRUE(harness.isReady()) << harness.getError();
      FloatBuffer x(type, 4 * 3 * 50), weights("f32", 12), base(type, 200), out(type, 200);
      Guarded<int32_t> indices(12);
      Random random;
      x.randomize(random);
      weights.randomize(random);
      base.randomize(random);
      for (int i = 0; i < 12; ++i) {
        indices[i] = i % 5 == 2 ? -1 : i;
        if (indices[i] < 0)
          for (int j = 0; j < 50; ++j)
            x.set(i * 50 + j, std::numeric_limits<float>::quiet_NaN());
      }
      ASSERT_TRUE(harness.run(
          "kernel",
          {x.bind({12}), weights.bind({4}), indices.bind({4}), base.bind({4}), out.bind({4})}, 2));
      EXPECT_TRUE(out.isIntact());
      for (int t = 0; t < 4; ++t)
        for (int i = 0; i < 50; ++i) {
          double expected = residual ? base.get(t * 50 + i) : 0;
          for (int j = 0; j < 3; ++j)
            if (indices[t * 3 + j] >= 0)
              expected += double(weights.get(t * 3 + j)) * x.get((t * 3 + j) * 50 + i);
          ASSERT_NEAR(out.get(t * 50 + i), expected, toleranceOf(type) * (std::abs(expected) + 1));
        }
    }
}

TEST(MoEKernel, DequantizesEveryCodeAndScale) {
  for (std::string type : {"f32", "bf16"}) {
    std::string body = llvm::formatv(R"(
      %b = moe.assemble_blocks %i0, %i1 : tensor<256x1x16xi8>, tensor<256x1xi8> -> !moe.block_tensor<[256, 32], mxfp4>
      %o0 = moe.dequantize %b : !moe.block_tensor<[256, 32], mxfp4> -> tensor<256x32x{0}>)",
                                     type);
    KernelHarness harness(
        genericKernel({"256x1x16xi8", "256x1xi8"}, {"256x32x" + type}, body, "16"), target);
    ASSERT_TRUE(harness.isReady()) << harness.getError();
    Guarded<uint8_t> codes(256 * 16), scales(256);
    FloatBuffer out(type, 256 * 32);
    for (int i = 0; i < 256; ++i) {
      scales[i] = i;
      for (int j = 0; j < 16; ++j)
        codes[i * 16 + j] = j | ((15 - j) << 4);
    }
    ASSERT_TRUE(harness.run("kernel", {codes.bind(), scales.bind(), out.bind()}, 16));
    EXPECT_TRUE(out.isIntact());
    const float values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    for (int i = 0; i < 256; ++i)
      for (int j = 0; j < 32; ++j) {
        int code = j % 2 ? 15 - j / 2 : j / 2;
        float expected = std::ldexp(code & 8 ? -values[code & 7] : values[code & 7], i - 127);
        if (i == 255)
          ASSERT_TRUE(std::isnan(out.get(i * 32 + j)));
        else
          ASSERT_EQ(out.get(i * 32 + j), expected) << "scale " << i << " code " << code;
      }
  }
}

TEST(MoEKernel, MultipliesByPlainWeights) {
  KernelHarness harness(genericKernel({"?x70xbf16", "20x70xbf16", "20xf32", "?x20xbf16", "70xbf16"},
                                      {"?x20xbf16"}, R"(
    %o0 = moe.linear %i0, %i1 bias(%i2 : tensor<20xf32>) residual(%i3 : tensor<?x20xbf16>) norm(%i4 : tensor<70xbf16>) {epsilon = 1.0e-5 : f64} : tensor<?x70xbf16>, tensor<20x70xbf16> -> tensor<?x20xbf16>)",
                                      "1"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  FloatBuffer x("bf16", 3 * 70), w("bf16", 20 * 70), bias("f32", 20), residual("bf16", 60),
      norm("bf16", 70), out("bf16", 60);
  Random random;
  for (FloatBuffer *buffer : {&x, &w, &bias, &residual, &norm})
    buffer->randomize(random);
  ASSERT_TRUE(harness.run(
      "kernel",
      {x.bind({3}), w.bind(), bias.bind(), residual.bind({3}), norm.bind(), out.bind({3})}, 3));
  EXPECT_TRUE(out.isIntact());
  for (int t = 0; t < 3; ++t) {
    double square = 0;
    for (int k = 0; k < 70; ++k)
      square += std::pow(x.get(t * 70 + k), 2.0) / 70;
    for (int n = 0; n < 20; ++n) {
      double sum = bias.get(n) + residual.get(t * 20 + n);
      for (int k = 0; k < 70; ++k)
        sum += fromBF16(toBF16(x.get(t * 70 + k) / std::sqrt(square + 1e-5) * norm.get(k))) *
               double(w.get(n * 70 + k));
      // The norm's own rounding may fall on the other side for a few elements.
      ASSERT_NEAR(out.get(t * 20 + n), sum, toleranceOf("bf16") * (std::abs(sum) + 1));
    }
  }
}

} // namespace
