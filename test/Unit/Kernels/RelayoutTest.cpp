// The relayout strategies against packing element by element.

#include "ProductCase.h"

#include "gtest/gtest.h"

using namespace moec_test;

namespace {

struct Shape {
  std::string type;
  int64_t experts, n, k;
};

class RelayoutSweep : public testing::TestWithParam<Shape> {};

/// The kernel of moe.relayout; the checkpoint keeps codes as [.., N, K / 32, 16], or as [N, K / 2]
/// without experts.
std::string makeText(const Shape &shape, const TestWeight &weight) {
  auto type = [&](std::string rest, std::string element) {
    std::string leading = shape.experts ? std::to_string(shape.experts) + "x" : "";
    return "<" + leading + std::to_string(shape.n) + "x" + rest + "x" + element + ">";
  };
  std::string arguments, source, body;
  if (weight.isMXFP4()) {
    std::string blocks = std::to_string(shape.k / 32);
    std::string codes = type(shape.experts ? blocks + "x16" : std::to_string(shape.k / 2), "i8");
    std::string scales = type(blocks, "i8");
    arguments = "%in0: memref" + codes + ", %in1: memref" + scales;
    body = "%c = bufferization.to_tensor %in0 restrict : memref" + codes + " to tensor" + codes +
           "\n%s = bufferization.to_tensor %in1 restrict : memref" + scales + " to tensor" +
           scales + "\n%w = moe.assemble_blocks %c, %s : tensor" + codes + ", tensor" + scales +
           " -> " + weight.getLogicalType() + "\n";
  } else {
    std::string dense = type(std::to_string(shape.k), shape.type);
    arguments = "%in0: memref" + dense;
    body =
        "%w = bufferization.to_tensor %in0 restrict : memref" + dense + " to tensor" + dense + "\n";
  }
  std::string strategy = weight.isMXFP4() ? "cpu.relayout.blocks" : "cpu.relayout.dense";
  return "func.func @kernel(" + arguments + ", %out0: " + weight.getStorageType() +
         ", %scratch: memref<?xi8>, %workgroup: index) attributes {plan.kernel} {\n" + body +
         "%r = moe.relayout %w {strategy = \"" + strategy + "\"} : " + weight.getLogicalType() +
         " -> " + weight.getPackedType() + "\nplan.store %r to %out0 : " + weight.getPackedType() +
         ", " + weight.getStorageType() + "\nreturn\n}\n";
}

TEST_P(RelayoutSweep, FillsPanelsAndPadding) {
  Shape shape = GetParam();
  std::mt19937 generator(7);
  TestWeight weight(shape.type, shape.experts, shape.n, shape.k, generator);
  if (weight.isMXFP4()) {
    // Blocks of zeros under unusual scales: a number is made neutral, NaN stays.
    for (int64_t column = 0; column < 32; ++column)
      for (int64_t row = 0; row < std::min<int64_t>(shape.n, 3); ++row)
        weight.setCode(0, row, column, column % 2 ? 8 : 0);
    weight.setScale(0, 0, 0, 0);
    if (shape.n > 2) {
      weight.setScale(0, 1, 0, 255);
      weight.setScale(0, 2, 0, 254);
    }
  }
  StrategyKernel kernel([&](std::string) { return makeText(shape, weight); });
  ASSERT_TRUE(kernel.isReady()) << kernel.getError();
  std::vector<std::byte> expected = weight.pack();
  std::vector<std::byte> packed(expected.size() + 64, std::byte(0xff));
  std::vector<Binding> bindings;
  if (weight.isMXFP4())
    bindings = {{weight.codes.data()}, {weight.scales.data()}, {packed.data()}};
  else
    bindings = {{weight.dense.data()}, {packed.data()}};
  ASSERT_TRUE(kernel.run(0, bindings));
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), packed.begin()));
  EXPECT_EQ(std::count(packed.end() - 64, packed.end(), std::byte(0xff)), 64);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RelayoutSweep,
                         testing::Values(Shape{"mxfp4", 0, 1, 32}, Shape{"mxfp4", 0, 258, 64},
                                         Shape{"mxfp4", 3, 320, 160}, Shape{"mxfp4", 2, 16, 2880},
                                         Shape{"bf16", 0, 1, 7}, Shape{"bf16", 0, 258, 33},
                                         Shape{"bf16", 3, 40, 64}, Shape{"f16", 0, 17, 45},
                                         Shape{"f32", 2, 35, 32}));

} // namespace
