// Generic kernels of linalg, tensor and arith ops, compiled and compared with plain loops.

#include "GenericKernel.h"

#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

#include <limits>

using namespace moec_test;

namespace {

const char *const target = "cpu";

struct Shape {
  int64_t rows, columns, tile;
};

class Elementwise : public testing::TestWithParam<std::tuple<std::string, Shape>> {};

TEST_P(Elementwise, AddsEveryElementOnce) {
  auto [type, shape] = GetParam();
  std::string tensor = "?x" + std::to_string(shape.columns) + "x" + type;
  KernelHarness harness(genericKernel({tensor, tensor}, {tensor},
                                      "%o0 = arith.addf %i0, %i1 : tensor<" + tensor + ">",
                                      std::to_string(shape.tile)),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  size_t count = shape.rows * shape.columns;
  FloatBuffer x(type, count), y(type, count), out(type, count);
  Random random;
  x.randomize(random);
  y.randomize(random);
  int64_t workgroups = (shape.rows + shape.tile - 1) / shape.tile;
  ASSERT_TRUE(harness.run(
      "kernel", {x.bind({shape.rows}), y.bind({shape.rows}), out.bind({shape.rows})}, workgroups));
  EXPECT_TRUE(out.isIntact());
  for (size_t i = 0; i < count; ++i) {
    float sum = x.get(i) + y.get(i);
    ASSERT_EQ(out.get(i), type == "bf16" ? fromBF16(toBF16(sum)) : sum) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Elementwise,
    testing::Combine(testing::Values("f32", "bf16"),
                     testing::Values(Shape{1, 1, 1}, Shape{3, 3, 2}, Shape{5, 15, 1},
                                     Shape{5, 16, 4}, Shape{7, 17, 3}, Shape{2, 40, 8},
                                     Shape{4, 100, 1}, Shape{3, 257, 2}, Shape{1, 2880, 1})));

TEST(GenericKernel, CutsColumnsAndRows) {
  KernelHarness harness(genericKernel({"?x100xf32"}, {"?x100xf32"},
                                      "%o0 = math.absf %i0 : tensor<?x100xf32>", "2, 48"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  Guarded<float> x(500), out(500);
  for (int i = 0; i < 500; ++i)
    x[i] = i % 2 ? i : -i;
  ASSERT_TRUE(harness.run("kernel", {x.bind({5}), out.bind({5})}, 3 * 3));
  EXPECT_TRUE(out.isIntact());
  for (int i = 0; i < 500; ++i)
    ASSERT_EQ(out[i], i);
}

TEST(GenericKernel, CutsVectorsOfAnyLength) {
  KernelHarness harness(genericKernel({"?xi32"}, {"?xi32"}, R"(
    %c3 = arith.constant dense<3> : tensor<1xi32>
    %three = arith.constant 3 : i32
    %n = arith.constant 0 : index
    %d = tensor.dim %i0, %n : tensor<?xi32>
    %t = tensor.splat %three[%d] : tensor<?xi32>
    %o0 = arith.muli %i0, %t : tensor<?xi32>)",
                                      "64"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  for (int64_t count : {1, 5, 64, 65, 200}) {
    Guarded<int32_t> x(count), out(count);
    for (int i = 0; i < count; ++i)
      x[i] = i - 7;
    ASSERT_TRUE(harness.run("kernel", {x.bind({count}), out.bind({count})}, (count + 63) / 64));
    EXPECT_TRUE(out.isIntact());
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(out[i], 3 * (i - 7)) << count;
  }
}

TEST(GenericKernel, GivesSeveralResults) {
  std::string tensor = "?x72xf32";
  KernelHarness harness(genericKernel({tensor, tensor, "72xf32"}, {tensor, tensor}, R"(
    %o0 = arith.addf %i0, %i1 : tensor<?x72xf32>
    %o1 = moe.rms_norm %o0 weight(%i2 : tensor<72xf32>) {epsilon = 1.0e-5 : f64} : tensor<?x72xf32>)",
                                      "2"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  FloatBuffer x("f32", 5 * 72), y("f32", 5 * 72), weight("f32", 72), sum("f32", 5 * 72),
      norm("f32", 5 * 72);
  Random random;
  x.randomize(random);
  y.randomize(random);
  weight.randomize(random);
  ASSERT_TRUE(harness.run(
      "kernel", {x.bind({5}), y.bind({5}), weight.bind(), sum.bind({5}), norm.bind({5})}, 3));
  EXPECT_TRUE(sum.isIntact() && norm.isIntact());
  for (int row = 0; row < 5; ++row) {
    double square = 0;
    for (int i = 0; i < 72; ++i) {
      float value = x.get(row * 72 + i) + y.get(row * 72 + i);
      ASSERT_EQ(sum.get(row * 72 + i), value);
      square += double(value) * value;
    }
    for (int i = 0; i < 72; ++i) {
      double expected = sum.get(row * 72 + i) / std::sqrt(square / 72 + 1e-5) * weight.get(i);
      ASSERT_NEAR(norm.get(row * 72 + i), expected, 1e-6 * std::abs(expected) + 1e-12);
    }
  }
}

TEST(GenericKernel, ReducesAlongEveryDimension) {
  for (bool columns : {true, false}) {
    std::string reduce = columns ? "affine_map<(r, c) -> (r)>" : "affine_map<(c, r) -> (c)>";
    std::string input = columns ? "affine_map<(r, c) -> (r, c)>" : "affine_map<(c, r) -> (r, c)>";
    std::string out = columns ? "9xf32" : "77xf32";
    std::string body = llvm::formatv(R"(
      %lowest = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<{0}>
      %f = linalg.fill ins(%lowest : f32) outs(%e : tensor<{0}>) -> tensor<{0}>
      %o0 = linalg.generic {{indexing_maps = [{1}, {2}], iterator_types = ["parallel", "reduction"]} ins(%i0 : tensor<9x77xf32>) outs(%f : tensor<{0}>) {{
      ^bb0(%a: f32, %b: f32):
        %m = arith.maximumf %a, %b : f32
        linalg.yield %m : f32
      } -> tensor<{0}>)",
                                     out, input, reduce)
                           .str();
    KernelHarness harness(genericKernel({"9x77xf32"}, {out}, body), target);
    ASSERT_TRUE(harness.isReady()) << harness.getError();
    FloatBuffer x("f32", 9 * 77), y("f32", columns ? 9 : 77);
    Random random;
    x.randomize(random);
    ASSERT_TRUE(harness.run("kernel", {x.bind(), y.bind()}));
    EXPECT_TRUE(y.isIntact());
    for (size_t i = 0; i < y.size(); ++i) {
      float expected = -std::numeric_limits<float>::infinity();
      for (int j = 0; j < (columns ? 77 : 9); ++j)
        expected = std::max(expected, x.get(columns ? i * 77 + j : j * 77 + i));
      ASSERT_EQ(y.get(i), expected) << i;
    }
  }
}

TEST(GenericKernel, ComputesSoftmax) {
  KernelHarness harness(genericKernel({"?x83xf32"}, {"?x83xf32"}, R"(
    %c0 = arith.constant 0 : index
    %d = tensor.dim %i0, %c0 : tensor<?x83xf32>
    %e = tensor.empty(%d) : tensor<?x83xf32>
    %o0 = linalg.softmax dimension(1) ins(%i0 : tensor<?x83xf32>) outs(%e : tensor<?x83xf32>) -> tensor<?x83xf32>)",
                                      "1"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  FloatBuffer x("f32", 4 * 83), out("f32", 4 * 83);
  Random random;
  x.randomize(random);
  ASSERT_TRUE(harness.run("kernel", {x.bind({4}), out.bind({4})}, 4));
  EXPECT_TRUE(out.isIntact());
  for (int row = 0; row < 4; ++row) {
    double sum = 0;
    for (int i = 0; i < 83; ++i)
      sum += std::exp(double(x.get(row * 83 + i)));
    for (int i = 0; i < 83; ++i)
      ASSERT_NEAR(out.get(row * 83 + i), std::exp(double(x.get(row * 83 + i))) / sum, 1e-7);
  }
}

TEST(GenericKernel, ComputesSoftmaxOfRowsOfAnyLength) {
  KernelHarness harness(genericKernel({"?x?xf32"}, {"?x?xf32"}, R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %rows = tensor.dim %i0, %c0 : tensor<?x?xf32>
    %columns = tensor.dim %i0, %c1 : tensor<?x?xf32>
    %e = tensor.empty(%rows, %columns) : tensor<?x?xf32>
    %o0 = linalg.softmax dimension(1) ins(%i0 : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>)",
                                      "1"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  for (int64_t columns : {1, 7, 100}) {
    FloatBuffer x("f32", 2 * columns), out("f32", 2 * columns);
    Random random;
    x.randomize(random);
    ASSERT_TRUE(harness.run("kernel", {x.bind({2, columns}), out.bind({2, columns})}, 2));
    EXPECT_TRUE(out.isIntact());
    for (int row = 0; row < 2; ++row) {
      double sum = 0;
      for (int i = 0; i < columns; ++i)
        sum += std::exp(double(x.get(row * columns + i)));
      for (int i = 0; i < columns; ++i)
        ASSERT_NEAR(out.get(row * columns + i), std::exp(double(x.get(row * columns + i))) / sum,
                    1e-6);
    }
  }
}

TEST(GenericKernel, ReshapesBetweenOps) {
  KernelHarness harness(genericKernel({"?x8xf32"}, {"?x2x4xf32"}, R"(
    %c0 = arith.constant 0 : index
    %d0 = tensor.dim %i0, %c0 : tensor<?x8xf32>
    %a = math.absf %i0 : tensor<?x8xf32>
    %b = tensor.expand_shape %a [[0], [1, 2]] output_shape [%d0, 2, 4] : tensor<?x8xf32> into tensor<?x2x4xf32>
    %o0 = arith.negf %b : tensor<?x2x4xf32>)",
                                      "1"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  FloatBuffer x("f32", 24), out("f32", 24);
  Random random;
  x.randomize(random);
  ASSERT_TRUE(harness.run("kernel", {x.bind({3}), out.bind({3})}, 3));
  EXPECT_TRUE(out.isIntact());
  for (int i = 0; i < 24; ++i)
    ASSERT_EQ(out.get(i), -std::abs(x.get(i)));
}

TEST(GenericKernel, RoundsF16Once) {
  KernelHarness harness(genericKernel({"?x8xf16", "?x8xf16"}, {"?x8xf16"},
                                      "%o0 = arith.mulf %i0, %i1 : tensor<?x8xf16>", "1"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  Guarded<_Float16> x(24), y(24), out(24);
  Random random;
  for (int i = 0; i < 24; ++i) {
    x[i] = random.next();
    y[i] = random.next();
  }
  ASSERT_TRUE(harness.run("kernel", {x.bind({3}), y.bind({3}), out.bind({3})}, 3));
  EXPECT_TRUE(out.isIntact());
  for (int i = 0; i < 24; ++i)
    ASSERT_EQ(float(out[i]), float(_Float16(float(x[i]) * float(y[i]))));
}

TEST(GenericKernel, SelectsByBooleans) {
  KernelHarness harness(genericKernel({"?x20xf32", "?x20xf32"}, {"?x20xf32", "?x20xi1"}, R"(
    %o1 = arith.cmpf ogt, %i0, %i1 : tensor<?x20xf32>
    %o0 = arith.select %o1, %i0, %i1 : tensor<?x20xi1>, tensor<?x20xf32>)",
                                      "1"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  FloatBuffer x("f32", 60), y("f32", 60), out("f32", 60);
  Guarded<uint8_t> larger(60, 77);
  Random random;
  x.randomize(random);
  y.randomize(random);
  ASSERT_TRUE(
      harness.run("kernel", {x.bind({3}), y.bind({3}), out.bind({3}), larger.bind({3})}, 3));
  EXPECT_TRUE(larger.isIntact());
  for (int i = 0; i < 60; ++i) {
    ASSERT_EQ(out.get(i), std::max(x.get(i), y.get(i)));
    ASSERT_EQ(larger[i], x.get(i) > y.get(i));
  }
}

TEST(GenericKernel, TransposesAndConcatenates) {
  KernelHarness harness(genericKernel({"5x12xf32", "12x3xf32"}, {"12x8xf32"}, R"(
    %e = tensor.empty() : tensor<12x5xf32>
    %t = linalg.transpose ins(%i0 : tensor<5x12xf32>) outs(%e : tensor<12x5xf32>) permutation = [1, 0]
    %o0 = tensor.concat dim(1) %t, %i1 : (tensor<12x5xf32>, tensor<12x3xf32>) -> tensor<12x8xf32>)"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  FloatBuffer x("f32", 60), y("f32", 36), out("f32", 96);
  Random random;
  x.randomize(random);
  y.randomize(random);
  ASSERT_TRUE(harness.run("kernel", {x.bind(), y.bind(), out.bind()}));
  EXPECT_TRUE(out.isIntact());
  for (int i = 0; i < 12; ++i)
    for (int j = 0; j < 8; ++j)
      ASSERT_EQ(out.get(i * 8 + j), j < 5 ? x.get(j * 12 + i) : y.get(i * 3 + j - 5));
}

TEST(GenericKernel, MultipliesMatrices) {
  KernelHarness harness(genericKernel({"?x50xf32", "50x37xf32"}, {"?x37xf32"}, R"(
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %d = tensor.dim %i0, %c0 : tensor<?x50xf32>
    %e = tensor.empty(%d) : tensor<?x37xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x37xf32>) -> tensor<?x37xf32>
    %o0 = linalg.matmul ins(%i0, %i1 : tensor<?x50xf32>, tensor<50x37xf32>) outs(%f : tensor<?x37xf32>) -> tensor<?x37xf32>)",
                                      "2"),
                        target);
  ASSERT_TRUE(harness.isReady()) << harness.getError();
  FloatBuffer x("f32", 150), w("f32", 50 * 37), out("f32", 111);
  Random random;
  x.randomize(random);
  w.randomize(random);
  ASSERT_TRUE(harness.run("kernel", {x.bind({3}), w.bind(), out.bind({3})}, 2));
  EXPECT_TRUE(out.isIntact());
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 37; ++j) {
      double sum = 0;
      for (int k = 0; k < 50; ++k)
        sum += double(x.get(i * 50 + k)) * w.get(k * 37 + j);
      ASSERT_NEAR(out.get(i * 37 + j), sum, 1e-4);
    }
}

TEST(GenericKernel, IsTheSameEveryTime) {
  std::string text =
      genericKernel({"?x72xbf16"}, {"?x72xbf16"}, "%o0 = math.exp %i0 : tensor<?x72xbf16>", "1");
  KernelHarness first(text, "cpu:sapphirerapids"), second(text, "cpu:sapphirerapids");
  ASSERT_FALSE(first.getSharedObject().empty()) << first.getError();
  EXPECT_EQ(first.getSharedObject(), second.getSharedObject());
}

TEST(GenericKernel, NamesWhatCannotBeCompiled) {
  KernelHarness harness(genericKernel({"?xf32"}, {"?xf32"}, R"(
    %o0 = "tensor.cast"(%x) : (tensor<3xf32>) -> tensor<?xf32>)"),
                        target);
  EXPECT_FALSE(harness.isReady());
  KernelHarness unbounded(genericKernel({"?x?xf32"}, {"?xf32"}, R"(
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %rows = tensor.dim %i0, %c0 : tensor<?x?xf32>
    %columns = tensor.dim %i0, %c1 : tensor<?x?xf32>
    %e = tensor.empty(%rows, %columns) : tensor<?x?xf32>
    %u = linalg.generic {indexing_maps = [affine_map<(a, b) -> (b, a)>, affine_map<(a, b) -> (a, b)>], iterator_types = ["parallel", "parallel"]} ins(%i0 : tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
    ^bb0(%a: f32, %b: f32):
      %x = math.exp %a : f32
      linalg.yield %x : f32
    } -> tensor<?x?xf32>
    %s = tensor.collapse_shape %u [[0, 1]] : tensor<?x?xf32> into tensor<?xf32>
    %n = tensor.dim %s, %c0 : tensor<?xf32>
    %q = tensor.empty(%n) : tensor<?xf32>
    %o0 = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]} ins(%s : tensor<?xf32>) outs(%q : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32):
      %i = linalg.index 0 : index
      %v = tensor.extract %s[%i] : tensor<?xf32>
      linalg.yield %v : f32
    } -> tensor<?xf32>)"),
                          target);
  EXPECT_FALSE(unbounded.isReady());
  EXPECT_NE(unbounded.getError().find("size is not bounded"), std::string::npos)
      << unbounded.getError();
}

} // namespace
