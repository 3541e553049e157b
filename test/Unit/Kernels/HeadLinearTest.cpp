// The strategy for products by heads against the reference interpreter.

#include "Interpreted.h"
#include "StrategyKernel.h"

using namespace mlir::moec::moe;
using namespace moec_test;

namespace {

struct HeadCase {
  int64_t heads, columns, elements;
  std::string type, weightType;

  KernelText describe(const std::string &tokens) const {
    auto shape = [](std::initializer_list<std::string> sizes, const std::string &element) {
      std::string text;
      for (const std::string &size : sizes)
        text += size + "x";
      return text + element;
    };
    std::string h = std::to_string(heads), n = std::to_string(columns),
                k = std::to_string(elements);
    KernelText text;
    text.inputs = {tensorArgument(shape({tokens, h, k}, type)),
                   tensorArgument(shape({h, n, k}, weightType))};
    text.outputs = {tensorArgument(shape({tokens, h, n}, type))};
    text.op = "%r0 = moe.head_linear %0, %1 {strategy = \"cuda.head_linear.tiles\"} : " +
              text.inputs[0].value + ", " + text.inputs[1].value + " -> " + text.outputs[0].value;
    return text;
  }
};

// Tiles are of 64 rows and 64 columns, 32 elements at a time.
TEST(HeadLinear, EqualsTheInterpreter) {
  std::mt19937 random(5);
  for (const HeadCase &shape : std::initializer_list<HeadCase>{{1, 1, 1, "f32", "f32"},
                                                               {3, 64, 32, "f32", "bf16"},
                                                               {2, 65, 33, "bf16", "bf16"},
                                                               {5, 130, 24, "f16", "f32"}}) {
    SCOPED_TRACE(shape.describe("?").op);
    StrategyKernel kernel([&](std::string tokens) { return shape.describe(tokens).print(); },
                          "cuda:sm_80");
    ASSERT_TRUE(kernel.isReady()) << kernel.getError();
    Interpreted reference(shape.describe("?").printFunction("op"));
    for (int64_t tokens : {0, 1, 64, 70}) {
      TestBuffer x(shape.type, tokens * shape.heads * shape.elements),
          weight(shape.weightType, shape.heads * shape.columns * shape.elements),
          result(shape.type, tokens * shape.heads * shape.columns);
      x.fillRandom(random, 1);
      weight.fillRandom(random, 1);
      ASSERT_TRUE(
          kernel.run(tokens, {{x.data(), {tokens}}, {weight.data()}, {result.data(), {tokens}}}));
      std::vector<ReferenceValue> expected = reference.call(
          "op", {reference.tensor(x, {tokens, shape.heads, shape.elements}),
                 reference.tensor(weight, {shape.heads, shape.columns, shape.elements})});
      ASSERT_EQ(expected.size(), 1u);
      double rounding = shape.type == "f32" ? 1e-5 : shape.type == "f16" ? 1e-3 : 8e-3;
      for (int64_t i = 0; i < result.size(); ++i) {
        double value = expected[0].getTensor().getReal(i);
        ASSERT_NEAR(result.get(i), value, rounding * std::max(1.0, std::abs(value)))
            << "element " << i;
      }
    }
  }
}

} // namespace
