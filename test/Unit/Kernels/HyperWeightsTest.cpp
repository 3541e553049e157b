// The strategies for the weights of hyper-connections against the reference interpreter.

#include "Interpreted.h"
#include "RecurrentKernel.h"

using namespace mlir::moec::moe;
using namespace moec_test;

namespace {

struct HyperCase {
  int64_t streams, features;
  std::string type;
  bool isHead;
  int iterations;

  int64_t getColumns() const { return isHead ? streams : streams * (streams + 2); }

  KernelText describe(const std::string &tokens, const std::string &target) const {
    KernelText text;
    std::string columns = std::to_string(getColumns());
    text.inputs = {tensorArgument(tokens + "x" + columns + "xf32"),
                   tensorArgument(tokens + "x" + std::to_string(streams) + "x" +
                                  std::to_string(features) + "x" + type),
                   tensorArgument(isHead ? "1xf32" : "3xf32"), tensorArgument(columns + "xf32")};
    text.outputs = {text.inputs[0]};
    text.op = "%r0 = moe.hyper_weights %0 of %1 scale(%2 : " + text.inputs[2].value +
              ") base(%3 : " + text.inputs[3].value + ") {strategy = \"" + target +
              ".hyper_weights\", iterations = " + std::to_string(iterations) +
              ", epsilon = 1.0e-6, norm_epsilon = 1.0e-6} : " + text.inputs[0].value + ", " +
              text.inputs[1].value + " -> " + text.outputs[0].value;
    return text;
  }
};

class HyperWeights : public testing::TestWithParam<const char *> {};

TEST_P(HyperWeights, EqualTheInterpreter) {
  if (!canRun(GetParam()))
    GTEST_SKIP() << "this machine cannot run " << GetParam();
  std::string family = std::string(GetParam()).substr(0, std::string(GetParam()).find(':'));
  std::mt19937 random(3);
  for (int64_t streams : {1, 2, 4, 8})
    for (int64_t features : {1, 16, 37, 300})
      for (bool isHead : {false, true}) {
        HyperCase shape{streams, features, features % 2 ? "f32" : "bf16", isHead,
                        streams == 2 ? 1 : 20};
        SCOPED_TRACE(std::to_string(streams) + " streams of " + std::to_string(features));
        StrategyKernel kernel(
            [&](std::string tokens) { return shape.describe(tokens, family).print(); }, GetParam());
        ASSERT_TRUE(kernel.isReady()) << kernel.getError();
        Interpreted reference(shape.describe("?", family).printFunction("op"));
        for (int64_t tokens : {1, 6}) {
          int64_t columns = shape.getColumns();
          TestBuffer products("f32", tokens * columns), x(shape.type, tokens * streams * features),
              scale("f32", isHead ? 1 : 3), base("f32", columns), result("f32", tokens * columns);
          for (TestBuffer *buffer : {&products, &x, &scale, &base})
            buffer->fillRandom(random, 2);
          ASSERT_TRUE(kernel.run(tokens, {{products.data(), {tokens}},
                                          {x.data(), {tokens}},
                                          {scale.data()},
                                          {base.data()},
                                          {result.data(), {tokens}}}));
          std::vector<ReferenceValue> expected = reference.call(
              "op", {reference.tensor(products, {tokens, columns}),
                     reference.tensor(x, {tokens, streams, features}),
                     reference.tensor(scale, {isHead ? 1 : 3}), reference.tensor(base, {columns})});
          ASSERT_EQ(expected.size(), 1u);
          for (int64_t i = 0; i < result.size(); ++i)
            ASSERT_NEAR(result.get(i), expected[0].getTensor().getReal(i), 3e-6) << "element " << i;
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Targets, HyperWeights,
                         testing::Values("cpu", "cpu:x86-64", "cpu:x86-64-v3", "cuda:sm_80"),
                         getTargetName);

} // namespace
