// How a step function is cut into its layers.

#include "moec/Compiler/Segments.h"
#include "moec/Dialect/MoE/IR/MoE.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

class SegmentsTest : public testing::Test {
protected:
  SegmentsTest() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect, moe::MoEDialect,
                        tensor::TensorDialect>();
  }

  /// Cuts the function "step" of the text.
  Segmentation cut(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    return *Segmentation::create(*module->getOps<func::FuncOp>().begin());
  }
  static std::string names(const Segmentation &segmentation) {
    std::string text;
    for (const Segment &segment : segmentation.getSegments())
      text += segment.name + ": " + std::to_string(segment.ops.size()) + " ops, " +
              std::to_string(segment.results.size()) + " results; ";
    return text;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

std::string step(const std::string &body) {
  return "func.func @step(%x: tensor<?x4xf32> {moe.name = \"x\", moe.dims = [\"n\"]}) -> "
         "tensor<?x4xf32> attributes {moe.entry} {\n" +
         body + "}\n";
}

TEST(ParseLayer, Names) {
  EXPECT_EQ(parseLayer("model.layers.3.mlp.router.weight"), 3);
  EXPECT_EQ(parseLayer("/model/layers.12/attn/q_proj/MatMul"), 12);
  EXPECT_EQ(parseLayer("transformer.h.0"), 0);
  EXPECT_EQ(parseLayer("model_layers_7_mlp_gate"), 7);
  EXPECT_EQ(parseLayer("model.norm.weight"), std::nullopt);
  EXPECT_EQ(parseLayer("model.layers.norm"), std::nullopt);
  EXPECT_EQ(parseLayer(""), std::nullopt);
}

TEST_F(SegmentsTest, CutsByLocations) {
  Segmentation segmentation = cut(step(R"(
    %a = arith.addf %x, %x : tensor<?x4xf32> loc("embed")
    %b = arith.mulf %a, %a : tensor<?x4xf32> loc("model.layers.0.mlp")
    %c = arith.addf %a, %b : tensor<?x4xf32> loc("model.layers.0")
    %d = arith.mulf %c, %a : tensor<?x4xf32> loc("model.layers.1")
    %e = arith.addf %d, %d : tensor<?x4xf32> loc("model.norm")
    return %e : tensor<?x4xf32>
  )"));
  EXPECT_EQ(names(segmentation), "embedding: 1 ops, 1 results; layer 0: 2 ops, 1 results; layer 1: "
                                 "1 ops, 1 results; head: 1 ops, 1 results; ");
  // The embedding, which crosses two cuts, is an argument of layer 1 as well, with the name of its
  // size.
  const Segment &layer = segmentation.getSegments()[2];
  FailureOr<SegmentProgram> program = segmentation.extract(layer, layer.results);
  ASSERT_TRUE(succeeded(program));
  EXPECT_EQ(program->arguments.size(), 2u);
  EXPECT_TRUE(succeeded(verify(*program->module)));
  auto function = *program->module->getOps<func::FuncOp>().begin();
  auto dims = function.getArgAttrOfType<ArrayAttr>(1, "moe.dims");
  ASSERT_TRUE(dims);
  EXPECT_EQ(cast<StringAttr>(dims[0]).getValue(), "n");
}

TEST_F(SegmentsTest, CutsByWeightsWhereNamesAreLost) {
  Segmentation segmentation = cut(step(R"(
    %w = moe.weight "model.layers.0.w" at <"f", 0, 64> : tensor<4x4xf32>
    %v = moe.weight "model.layers.1.w" at <"f", 64, 64> : tensor<4x4xf32>
    %h = moe.weight "head" at <"f", 128, 64> : tensor<4x4xf32>
    %a = moe.linear %x, %w : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
    %b = moe.linear %a, %v : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
    %c = arith.addf %a, %b : tensor<?x4xf32>
    %d = moe.linear %c, %h : tensor<?x4xf32>, tensor<4x4xf32> -> tensor<?x4xf32>
    return %d : tensor<?x4xf32>
  )"));
  EXPECT_EQ(names(segmentation),
            "layer 0: 1 ops, 1 results; layer 1: 2 ops, 1 results; head: 1 ops, 1 results; ");
}

TEST_F(SegmentsTest, NoLayers) {
  Segmentation segmentation =
      cut(step("%a = arith.addf %x, %x : tensor<?x4xf32>\nreturn %a : tensor<?x4xf32>\n"));
  EXPECT_EQ(names(segmentation), "program: 1 ops, 1 results; ");
}

TEST_F(SegmentsTest, SizesAreCopiedNotCrossed) {
  Segmentation segmentation = cut(step(R"(
    %zero = arith.constant 0 : index
    %n = tensor.dim %x, %zero : tensor<?x4xf32>
    %a = tensor.expand_shape %x [[0], [1, 2]] output_shape [%n, 2, 2] : tensor<?x4xf32> into tensor<?x2x2xf32> loc("layers.0")
    %b = tensor.collapse_shape %a [[0], [1, 2]] : tensor<?x2x2xf32> into tensor<?x4xf32> loc("layers.0")
    %c = tensor.expand_shape %b [[0], [1, 2]] output_shape [%n, 2, 2] : tensor<?x4xf32> into tensor<?x2x2xf32> loc("layers.1")
    %d = tensor.collapse_shape %c [[0], [1, 2]] : tensor<?x2x2xf32> into tensor<?x4xf32> loc("layers.1")
    return %d : tensor<?x4xf32>
  )"));
  EXPECT_EQ(names(segmentation), "layer 0: 2 ops, 1 results; layer 1: 2 ops, 1 results; ");
}

TEST_F(SegmentsTest, SharedCachesMergeLayers) {
  std::string cache = "!moe.cache<kv_heads = 1, key_dim = 4, value_dim = 4, block = 16, f32>";
  std::string tokens = "tensor<?xi32> {moe.dims = [\"n\"]}";
  std::string append = "moe.kv_append %x, %x into %cache at(%p, %s, %t) : tensor<?x1x4xf32>, "
                       "tensor<?x1x4xf32>, " +
                       cache + ", tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32> loc(\"layers.0\")\n";
  std::string attend = "moe.attention %x over %cache at(%p, %s, %t) {scale = 1.0 : f64} : "
                       "tensor<?x1x4xf32>, <kv_heads = 1, key_dim = "
                       "4, value_dim = 4, block = 16, f32>, tensor<?xi32>, tensor<?xi32>, "
                       "tensor<?x?xi32> -> tensor<?x1x4xf32> loc(";
  Segmentation segmentation = cut(
      "func.func @step(%x: tensor<?x1x4xf32> {moe.dims = [\"n\"]}, %p: " + tokens +
      ", %s: " + tokens + ", %t: tensor<?x?xi32> {moe.dims = [\"s\", \"b\"]}, %cache: " + cache +
      ") -> tensor<?x1x4xf32> {\n" + append + "%a = " + attend + "\"layers.0\")\n%b = " + attend +
      "\"layers.1\")\n%c = arith.addf %a, %b : tensor<?x1x4xf32> loc(\"layers.2\")\nreturn %c : "
      "tensor<?x1x4xf32>\n}");
  EXPECT_EQ(names(segmentation), "layers 0 to 1: 3 ops, 2 results; layer 2: 1 ops, 1 results; ");
}

} // namespace
