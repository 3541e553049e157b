// Weights by reference: read once, from one folder only, with errors that name them.

#include "test/Unit/Reference/TestModules.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

using namespace mlir;
using namespace mlir::moec::moe;

namespace {
class WeightsTest : public ::testing::Test {
protected:
  void SetUp() override {
    folder = ::testing::TempDir() + "/reference_weights_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder);
    float values[] = {1, 2, 3, 4};
    std::ofstream(folder + "/a.bin", std::ios::binary)
        .write(reinterpret_cast<const char *>(values), sizeof(values));
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  FailureOr<SmallVector<ReferenceValue>> run(const std::string &reference,
                                             const std::string &type = "tensor<2xf32>") {
    module = test.parse("func.func @main() -> " + type + " { %0 = moe.weight \"model.w\" at <" +
                        reference + "> : " + type + " return %0 : " + type + " }");
    std::string problem;
    source = std::move(*openWeightFolder(folder, /*followLinks=*/false, problem));
    return Interpreter(*module, source.get()).call("main", {});
  }

  TestContext test;
  std::string folder;
  OwningOpRef<ModuleOp> module;
  std::unique_ptr<WeightSource> source;
};

/// Counts how often it is read.
class CountingSource : public WeightSource {
public:
  LogicalResult read(StringRef, uint64_t, MutableArrayRef<std::byte> bytes,
                     std::string &) override {
    ++reads;
    std::memset(bytes.data(), 0, bytes.size());
    return success();
  }
  int reads = 0;
};
} // namespace

TEST_F(WeightsTest, BytesAtAnOffset) {
  FailureOr<SmallVector<ReferenceValue>> results = run("\"a.bin\", 4, 8");
  ASSERT_TRUE(succeeded(results)) << test.takeErrors();
  EXPECT_EQ(results->front().getTensor().getFloats(), (std::vector<float>{2, 3}));
}

TEST_F(WeightsTest, PastTheEnd) {
  EXPECT_TRUE(failed(run("\"a.bin\", 12, 8")));
  std::string errors = test.takeErrors();
  EXPECT_NE(errors.find("weight 'model.w'"), std::string::npos) << errors;
  EXPECT_NE(errors.find("a.bin"), std::string::npos) << errors;
}

TEST_F(WeightsTest, OutsideTheFolder) {
  std::ofstream(folder + "/../outside.bin") << "12345678";
  EXPECT_TRUE(failed(run("\"../outside.bin\", 0, 8")));
  EXPECT_NE(test.takeErrors().find("weight 'model.w'"), std::string::npos);
  std::filesystem::remove(folder + "/../outside.bin");
}

TEST_F(WeightsTest, NoSuchFile) {
  EXPECT_TRUE(failed(run("\"b.bin\", 0, 8")));
  EXPECT_NE(test.takeErrors().find("b.bin"), std::string::npos);
  std::string problem;
  EXPECT_TRUE(failed(openWeightFolder(folder + "/nothing", false, problem)));
  EXPECT_NE(problem.find("nothing"), std::string::npos);
}

TEST_F(WeightsTest, ReadOnce) {
  module = test.parse(R"mlir(
    func.func @main() -> (tensor<2xf32>, tensor<2xf32>, tensor<2xi32>) {
      %0 = moe.weight "w" at <"a", 0, 8> : tensor<2xf32>
      %1 = moe.weight "w" at <"a", 0, 8> : tensor<2xf32>
      %2 = moe.weight "w" at <"a", 0, 8> : tensor<2xi32>
      return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xi32>
    })mlir");
  CountingSource counting;
  Interpreter interpreter(*module, &counting);
  ASSERT_TRUE(succeeded(interpreter.call("main", {})));
  ASSERT_TRUE(succeeded(interpreter.call("main", {})));
  EXPECT_EQ(counting.reads, 2); // one for each type
}
