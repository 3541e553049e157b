// Damaged ONNX files through the whole importer and the raising passes. The `sanitize` preset builds this test, too: our own
// code is instrumented there, libMLIR is not.
#include "TestModels.h"

#include "moec/Transforms/Raise/Passes.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace mlir;
using namespace mlir::moec;
using moec_test::Diagnostics;
using moec_test::GraphBuilder;
using onnx::TensorProto;

#if __has_feature(address_sanitizer)
/// Containers and arenas that our code and libMLIR both work on are annotated by our half alone, so that reading what
/// libMLIR put there would be an error.
extern "C" const char *__asan_default_options() {
  return "detect_container_overflow=0:allow_user_poisoning=0";
}
#endif

namespace {

namespace fs = std::filesystem;

class MutationTest : public testing::Test {
protected:
  MutationTest() {
    std::string pattern = (fs::temp_directory_path() / "moec-mutation-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~MutationTest() override { fs::remove_all(folder); }

  /// Whether the file imports. If it does, it must pass through the raising passes; if not, a diagnostic must say why.
  bool import(const std::string &bytes) {
    std::string path = (folder / "model.onnx").string();
    std::ofstream(path, std::ios::binary) << bytes;
    Diagnostics diagnostics(&context);
    FailureOr<OwningOpRef<ModuleOp>> module = importONNX(path, {}, &context);
    if (failed(module)) {
      EXPECT_GT(diagnostics.count, 0u);
      return false;
    }
    PassManager manager(&context);
    buildRaisePipeline(manager);
    EXPECT_TRUE(succeeded(manager.run(**module))) << diagnostics.text;
    return true;
  }

  MLIRContext context;
  fs::path folder;
};

TEST_F(MutationTest, SurvivesEveryTruncationAndChange) {
  GraphBuilder graph;
  graph.input("x", TensorProto::FLOAT, {"n", "4"}).input("i", TensorProto::INT64, {"n"});
  graph.output("y", TensorProto::FLOAT, {"n", "2", "2"});
  graph.floats("w", {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  graph.integers("shape", {-1, 2, 2}).integers("k", {2}).integers("ends", {9});
  graph.node("Gather", {"w", "i"}, {"g"});
  graph.node("Add", {"x", "g"}, {"a"});
  graph.node("TopK", {"a", "k"}, {"v", "t"});
  graph.node("Slice", {"a", "k", "ends"}, {"s"});
  GraphBuilder::set(graph.node("Concat", {"v", "v"}, {"c"}), "axis", 1);
  graph.node("Reshape", {"c", "shape"}, {"y"});
  std::string good = graph.model.SerializeAsString();

  ASSERT_TRUE(import(good));
  size_t refused = 0;
  for (size_t length = 0; length < good.size(); ++length)
    refused += !import(good.substr(0, length));
  EXPECT_GT(refused, good.size() / 2);
  for (size_t i = 0; i < good.size(); ++i) {
    // All values of a byte make a run of minutes; these reach every field and every boundary.
    for (int change : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff, 0x7f}) {
      std::string changed = good;
      changed[i] = static_cast<char>(changed[i] ^ change);
      refused += !import(changed);
    }
  }
  EXPECT_GT(refused, 2 * good.size());
}

} // namespace
