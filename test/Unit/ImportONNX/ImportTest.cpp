#include "TestModels.h"

#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Dialect/MoE/Reference/Interpreter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace mlir;
using namespace mlir::moec;
using moe::ReferenceTensor;
using moec_test::Diagnostics;
using moec_test::GraphBuilder;
using onnx::TensorProto;

namespace {

namespace fs = std::filesystem;

class ImportTest : public testing::Test {
protected:
  ImportTest() {
    DialectRegistry registry;
    moe::registerReferenceModels(registry);
    context.appendDialectRegistry(registry);
    std::string pattern = (fs::temp_directory_path() / "moec-import-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~ImportTest() override { fs::remove_all(folder); }

  std::string path() const { return (folder / "model.onnx").string(); }
  void write(const std::string &bytes) { std::ofstream(path(), std::ios::binary) << bytes; }

  FailureOr<OwningOpRef<ModuleOp>> import(const std::string &bytes,
                                          const ImportONNXOptions &options = {}) {
    write(bytes);
    return importONNX(path(), options, &context);
  }
  std::string errorOf(const GraphBuilder &graph, const ImportONNXOptions &options = {}) {
    Diagnostics diagnostics(&context);
    EXPECT_TRUE(failed(import(graph.model.SerializeAsString(), options)));
    EXPECT_EQ(diagnostics.count, 1u) << diagnostics.text;
    return diagnostics.text;
  }

  ReferenceTensor floats(ArrayRef<int64_t> shape, ArrayRef<double> values) {
    return *ReferenceTensor::createFrom(Float32Type::get(&context), shape, values);
  }
  ReferenceTensor integers(ArrayRef<int64_t> shape, ArrayRef<int64_t> values) {
    return *ReferenceTensor::createFrom(IntegerType::get(&context, 64), shape, values);
  }

  /// Imports the graph and interprets it.
  std::vector<ReferenceTensor> run(const GraphBuilder &graph,
                                   std::vector<moe::ReferenceValue> inputs) {
    Diagnostics diagnostics(&context);
    std::vector<ReferenceTensor> outputs;
    auto module = import(graph.model.SerializeAsString());
    EXPECT_TRUE(succeeded(module)) << diagnostics.text;
    if (failed(module))
      return outputs;
    std::string problem;
    auto weights = moe::openWeightFolder(folder.string(), false, problem);
    moe::Interpreter interpreter(**module, weights->get());
    auto results = interpreter.call("main", inputs);
    EXPECT_TRUE(succeeded(results)) << diagnostics.text;
    if (succeeded(results))
      for (const moe::ReferenceValue &value : *results)
        outputs.push_back(value.getTensor());
    return outputs;
  }

  static void expectFloats(const ReferenceTensor &actual, std::vector<double> expected) {
    std::vector<float> values = actual.getFloats();
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(values[i], expected[i], 1e-6 * std::max(1.0, std::abs(expected[i]))) << i;
  }
  static void expectIntegers(const ReferenceTensor &actual, std::vector<int64_t> expected) {
    ASSERT_EQ(actual.getSize(), int64_t(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(actual.getInteger(i), expected[i]) << i;
  }

  MLIRContext context;
  fs::path folder;
};

//===------------------------------------------------------------------------------------------===//
// Errors
//===------------------------------------------------------------------------------------------===//

TEST_F(ImportTest, ReportsAllThatIsUnsupportedAtOnce) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"n"}).output("y", TensorProto::FLOAT, {"n"});
  graph.node("Frobnicate", {"x"}, {"a"});
  graph.node("Gather", {"a", "x"}, {"b"})->set_domain("com.example");
  GraphBuilder::set(graph.node("Concat", {"a", "b"}, {"c"}), "blend", 1);
  graph.node("Gelu", {"c"}, {"y"});
  graph.model.mutable_opset_import(0)->set_version(19);
  std::string text = errorOf(graph);
  EXPECT_NE(text.find("4 problems"), std::string::npos) << text;
  EXPECT_NE(
      text.find("node 'node_a': operator 'Frobnicate' of domain 'ai.onnx', version 19: is not "
                "supported"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("domain 'com.example': opset_import does not name the domain"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("attribute 'blend' is not supported"), std::string::npos) << text;
  EXPECT_NE(text.find("is supported from version 20 to 28"), std::string::npos) << text;
}

TEST_F(ImportTest, ReportsProblemsOfSeveralNodes) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"2", "3"}).input("i", TensorProto::FLOAT, {"2"});
  graph.output("y", TensorProto::FLOAT, {}).output("z", TensorProto::INT64, {"2", "3"});
  graph.node("Gather", {"x", "i"}, {"y"});
  graph.node("Transpose", {"x"}, {"t"});
  graph.node("Add", {"x", "t"}, {"u"});
  graph.node("Relu", {"x"}, {"z"});
  graph.node("Relu", {"nowhere"}, {"v"});
  std::string text = errorOf(graph);
  EXPECT_NE(text.find("node 'node_y' (Gather): the indices are of type FLOAT"), std::string::npos)
      << text;
  EXPECT_NE(text.find("node 'node_u' (Add): cannot tell that the sizes 2 and 3 are equal"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("'nowhere' is no input, initialiser or output"), std::string::npos) << text;
  EXPECT_NE(text.find("output 'z': declared as INT64, but the graph computes FLOAT"),
            std::string::npos)
      << text;
}

TEST_F(ImportTest, ReportsOverflowingShapes) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"1"}).output("y", TensorProto::FLOAT, {});
  graph.integers("shape", {int64_t(1) << 40, int64_t(1) << 40});
  graph.node("Expand", {"x", "shape"}, {"y"});
  EXPECT_NE(errorOf(graph).find("overflows"), std::string::npos);
}

TEST_F(ImportTest, SaysWhatALanguageModelLacks) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"n"}).output("y", TensorProto::FLOAT, {"n"});
  graph.node("Relu", {"x"}, {"y"});
  ImportONNXOptions options;
  options.interface = ImportONNXOptions::Interface::LanguageModel;
  EXPECT_NE(errorOf(graph, options).find("no input of token ids"), std::string::npos);
}

//===------------------------------------------------------------------------------------------===//
// Meaning. Each case is one that another importer got wrong.
//===------------------------------------------------------------------------------------------===//

TEST_F(ImportTest, GatherTakesNegativeIndices) {
  GraphBuilder graph;
  graph.input("i", TensorProto::INT64, {"3"}).output("y", TensorProto::FLOAT, {"3", "2"});
  graph.floats("table", {3, 2}, {0, 1, 10, 11, 20, 21});
  graph.node("Gather", {"table", "i"}, {"y"});
  auto y = run(graph, {integers({3}, {-1, -3, 0})});
  expectFloats(y[0], {20, 21, 0, 1, 0, 1});
}

TEST_F(ImportTest, GatherAlongAnInnerAxis) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"2", "3"}).input("i", TensorProto::INT64, {"2", "2"});
  graph.output("y", TensorProto::FLOAT, {"2", "2", "2"});
  GraphBuilder::set(graph.node("Gather", {"x", "i"}, {"y"}), "axis", -1);
  auto y = run(graph, {floats({2, 3}, {0, 1, 2, 10, 11, 12}), integers({2, 2}, {2, 0, -1, 1})});
  expectFloats(y[0], {2, 0, 2, 1, 12, 10, 12, 11});
}

TEST_F(ImportTest, GatherNDTakesPairsAndBatches) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"2", "3"}).input("i", TensorProto::INT64, {"3", "2"});
  graph.input("j", TensorProto::INT64, {"2", "1"});
  graph.output("y", TensorProto::FLOAT, {"3"}).output("z", TensorProto::FLOAT, {"2"});
  graph.node("GatherND", {"x", "i"}, {"y"});
  GraphBuilder::set(graph.node("GatherND", {"x", "j"}, {"z"}), "batch_dims", 1);
  auto y = run(graph, {floats({2, 3}, {0, 1, 2, 10, 11, 12}),
                       integers({3, 2}, {1, 2, 0, -1, -1, 0}), integers({2, 1}, {1, -1})});
  expectFloats(y[0], {12, 2, 10});
  expectFloats(y[1], {1, 12});
}

TEST_F(ImportTest, GatherElements) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"2", "3"}).input("i", TensorProto::INT64, {"2", "2"});
  graph.output("y", TensorProto::FLOAT, {"2", "2"});
  GraphBuilder::set(graph.node("GatherElements", {"x", "i"}, {"y"}), "axis", 1);
  auto y = run(graph, {floats({2, 3}, {0, 1, 2, 10, 11, 12}), integers({2, 2}, {2, 0, -1, 1})});
  expectFloats(y[0], {2, 0, 12, 11});
}

TEST_F(ImportTest, SliceWithNegativeStartsAndOpenEnds) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"n"}).output("y", TensorProto::FLOAT, {"m"});
  graph.output("z", TensorProto::FLOAT, {"k"}).output("w", TensorProto::FLOAT, {"j"});
  graph.integers("minus3", {-3}).integers("end", {INT64_MAX}).integers("axis", {0});
  graph.integers("two", {2}).integers("one", {1});
  graph.node("Slice", {"x", "minus3", "end", "axis"}, {"y"});
  graph.node("Slice", {"x", "one", "end", "axis", "two"}, {"z"});
  graph.node("Slice", {"x", "one", "minus3", "axis"}, {"w"});
  auto y = run(graph, {floats({6}, {0, 1, 2, 3, 4, 5})});
  expectFloats(y[0], {3, 4, 5});
  expectFloats(y[1], {1, 3, 5});
  expectFloats(y[2], {1, 2});
  // Shorter than the slice asks for.
  auto shorter = run(graph, {floats({2}, {0, 1})});
  expectFloats(shorter[0], {0, 1});
  expectFloats(shorter[1], {1});
  expectFloats(shorter[2], {});
}

TEST_F(ImportTest, SliceWithStartsFromTheInput) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"n"}).input("start", TensorProto::INT64, {"1"});
  graph.output("y", TensorProto::FLOAT, {"m"});
  graph.integers("end", {INT64_MAX});
  graph.node("Slice", {"x", "start", "end"}, {"y"});
  auto y = run(graph, {floats({4}, {0, 1, 2, 3}), integers({1}, {-2})});
  expectFloats(y[0], {2, 3});
}

TEST_F(ImportTest, SliceBackwards) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"4"}).output("y", TensorProto::FLOAT, {"4"});
  graph.integers("start", {-1}).integers("end", {INT64_MIN}).integers("axis", {0});
  graph.integers("step", {-1});
  graph.node("Slice", {"x", "start", "end", "axis", "step"}, {"y"});
  expectFloats(run(graph, {floats({4}, {0, 1, 2, 3})})[0], {3, 2, 1, 0});
}

TEST_F(ImportTest, TopKOrdersTiesAndNaN) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"n", "5"});
  graph.output("v", TensorProto::FLOAT, {"n", "3"}).output("i", TensorProto::INT64, {"n", "3"});
  graph.output("lv", TensorProto::FLOAT, {"n", "3"}).output("li", TensorProto::INT64, {"n", "3"});
  graph.integers("k", {3});
  graph.node("TopK", {"x", "k"}, {"v", "i"});
  GraphBuilder::set(graph.node("TopK", {"x", "k"}, {"lv", "li"}), "largest", 0);
  double nan = std::nan("");
  auto y = run(graph, {floats({2, 5}, {1, 7, 7, 3, 7, nan, 2, -1, nan, 0})});
  expectIntegers(y[1], {1, 2, 4, 1, 4, 2});
  expectFloats(y[0], {7, 7, 7, 2, 0, -1});
  expectIntegers(y[3], {0, 3, 1, 2, 4, 1});
}

TEST_F(ImportTest, ShapeArithmeticLeavesOnlySizes) {
  // [b, t, 6] -> [b, 2, t, 3] by way of Shape, Gather, Concat, Mul and a -1.
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"b", "t", "6"});
  graph.output("y", TensorProto::FLOAT, {"b", "2", "t", "3"});
  graph.output("n", TensorProto::INT64, {});
  graph.integers("zero", {0}).integers("one", {1}).integers("minus", {-1}).integers("three", {3});
  graph.integers("scalar", {1}, /*scalar=*/true);
  graph.node("Shape", {"x"}, {"shape"});
  graph.node("Gather", {"shape", "zero"}, {"batch"});
  graph.node("Gather", {"shape", "scalar"}, {"tokens0"});
  graph.node("Unsqueeze", {"tokens0", "zero"}, {"tokens"});
  GraphBuilder::set(graph.node("Concat", {"batch", "tokens", "minus", "three"}, {"wanted"}), "axis",
                    0);
  graph.node("Reshape", {"x", "wanted"}, {"split"});
  GraphBuilder::set(graph.node("Transpose", {"split"}, {"y"}), "perm", {0, 2, 1, 3});
  graph.node("Size", {"x"}, {"n"});
  auto module = import(graph.model.SerializeAsString());
  ASSERT_TRUE(succeeded(module));
  unsigned movements = 0;
  (**module).walk([&](Operation *op) {
    movements += isa<tensor::ExpandShapeOp, linalg::TransposeOp>(op);
    EXPECT_FALSE((isa<tensor::ConcatOp, tensor::ReshapeOp>(op)));
  });
  EXPECT_EQ(movements, 2u);
  auto y = run(graph, {floats({1, 2, 6}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})});
  expectFloats(y[0], {0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10, 11});
  expectIntegers(y[1], {12});
}

TEST_F(ImportTest, ReshapeThatMixesDimensions) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"2", "3"}).output("y", TensorProto::FLOAT, {"3", "2"});
  graph.integers("shape", {3, 2});
  graph.node("Reshape", {"x", "shape"}, {"y"});
  expectFloats(run(graph, {floats({2, 3}, {0, 1, 2, 3, 4, 5})})[0], {0, 1, 2, 3, 4, 5});
}

TEST_F(ImportTest, BroadcastsLikeNumpy) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"2", "1", "3"}).input("y", TensorProto::FLOAT, {"2", "1"});
  graph.output("z", TensorProto::FLOAT, {"2", "2", "3"});
  graph.node("Sub", {"x", "y"}, {"z"});
  expectFloats(run(graph, {floats({2, 1, 3}, {0, 1, 2, 3, 4, 5}), floats({2, 1}, {10, 20})})[0],
               {-10, -9, -8, -20, -19, -18, -7, -6, -5, -17, -16, -15});
}

TEST_F(ImportTest, MatMulOfVectorsAndBatches) {
  GraphBuilder graph;
  graph.input("a", TensorProto::FLOAT, {"2", "1", "2"}).input("b", TensorProto::FLOAT, {"2", "3"});
  graph.input("v", TensorProto::FLOAT, {"2"});
  graph.output("y", TensorProto::FLOAT, {"2", "1", "3"}).output("z", TensorProto::FLOAT, {"3"});
  graph.output("w", TensorProto::FLOAT, {});
  graph.node("MatMul", {"a", "b"}, {"y"});
  graph.node("MatMul", {"v", "b"}, {"z"});
  graph.node("MatMul", {"v", "v"}, {"w"});
  auto y = run(graph, {floats({2, 1, 2}, {1, 2, 3, 4}), floats({2, 3}, {1, 2, 3, 4, 5, 6}),
                       floats({2}, {1, -1})});
  expectFloats(y[0], {9, 12, 15, 19, 26, 33});
  expectFloats(y[1], {-3, -3, -3});
  expectFloats(y[2], {2});
}

TEST_F(ImportTest, ReductionsAndSoftmax) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"2", "3"});
  for (const char *name : {"sum", "max", "mean", "soft"})
    graph.output(name, TensorProto::FLOAT, {});
  graph.integers("axis", {-1});
  GraphBuilder::set(graph.node("ReduceSum", {"x", "axis"}, {"sum"}), "keepdims", 0);
  graph.node("ReduceMax", {"x", "axis"}, {"max"});
  graph.node("ReduceMean", {"x"}, {"mean"});
  GraphBuilder::set(graph.node("Softmax", {"x"}, {"soft"}), "axis", 0);
  auto y = run(graph, {floats({2, 3}, {1, 2, 3, 1, 2000, -5})});
  expectFloats(y[0], {6, 1996});
  expectFloats(y[1], {3, 2000});
  expectFloats(y[2], {2002.0 / 6});
  expectFloats(y[3], {0.5, 0, 1 / (1 + std::exp(-8.0)), 0.5, 1, 1 / (1 + std::exp(8.0))});
}

TEST_F(ImportTest, SplitsIntoUnequalParts) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"5"});
  graph.output("a", TensorProto::FLOAT, {"3"}).output("b", TensorProto::FLOAT, {"2"});
  GraphBuilder::set(graph.node("Split", {"x"}, {"a", "b"}), "num_outputs", 2);
  auto y = run(graph, {floats({5}, {0, 1, 2, 3, 4})});
  expectFloats(y[0], {0, 1, 2});
  expectFloats(y[1], {3, 4});
}

TEST_F(ImportTest, FixesNamedDimensions) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"batch", "n"}).output("y", TensorProto::FLOAT, {});
  graph.node("Relu", {"x"}, {"y"});
  ImportONNXOptions options;
  options.dimensions["batch"] = 3;
  auto module = import(graph.model.SerializeAsString(), options);
  ASSERT_TRUE(succeeded(module));
  auto function = (**module).lookupSymbol<func::FuncOp>("main");
  EXPECT_EQ(cast<RankedTensorType>(function.getArgument(0).getType()).getShape(),
            (ArrayRef<int64_t>{3, ShapedType::kDynamic}));
}

} // namespace
