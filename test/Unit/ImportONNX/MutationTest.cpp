// Damaged ONNX files through the whole importer and the raising passes. The `sanitize` preset
// builds this test, too: our own code is instrumented there, libMLIR is not.
#include "TestModels.h"

#include "lib/Conversion/ImportONNX/WireOffsets.h"
#include "moec/Transforms/Raise/Passes.h"

#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

using namespace mlir;
using namespace mlir::moec;
using moec_test::Diagnostics;
using moec_test::GraphBuilder;
using onnx::TensorProto;

namespace {

namespace fs = std::filesystem;

class MutationTest : public testing::Test {
protected:
  MutationTest() {
    std::string pattern = (fs::temp_directory_path() / "moec-mutation-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~MutationTest() override { fs::remove_all(folder); }

  /// Whether the file imports and passes through the raising passes. If not, a diagnostic must say
  /// why.
  bool import(const std::string &bytes) {
    std::string path = (folder / "model.onnx").string();
    std::ofstream(path, std::ios::binary) << bytes;
    Diagnostics diagnostics(&context);
    FailureOr<OwningOpRef<ModuleOp>> module = importONNX(path, {}, &context);
    bool imports = succeeded(module);
    if (imports) {
      PassManager manager(&context);
      buildRaisePipeline(manager);
      imports = succeeded(manager.run(**module));
      // Plain tensors can always stay what they are.
      EXPECT_TRUE(imports || (**module)->getAttr("moe.language_model")) << diagnostics.text;
    }
    EXPECT_TRUE(imports || diagnostics.count > 0);
    return imports;
  }

  MLIRContext context;
  fs::path folder;
};

/// What a byte is exchanged with: all values make a run of minutes, for when there is time; these
/// reach every field and every boundary.
static std::vector<int> getChanges() {
  std::vector<int> changes = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff, 0x7f};
  if (std::getenv("MOEC_TEST_EVERY_BYTE")) {
    changes.resize(255);
    std::iota(changes.begin(), changes.end(), 1);
  }
  return changes;
}

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
    for (int change : getChanges()) {
      std::string changed = good;
      changed[i] = static_cast<char>(changed[i] ^ change);
      refused += !import(changed);
    }
  }
  EXPECT_GT(refused, 2 * good.size());
}

/// Changes of single bytes of a whole language model, weights left out.
TEST_F(MutationTest, SurvivesChangesOfALanguageModel) {
  std::ifstream stream(MOEC_TEST_MODELS "/gptoss-micro/model-bf16.onnx", std::ios::binary);
  std::string good(std::istreambuf_iterator<char>(stream), {});
  ASSERT_TRUE(import(good));

  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(good));
  std::vector<bool> isWeight(good.size(), false);
  auto offsets = onnx_import::findRawDataOffsets(good);
  ASSERT_TRUE(offsets);
  for (auto [offset, tensor] : llvm::zip_equal(*offsets, model.graph().initializer()))
    if (offset)
      std::fill_n(isWeight.begin() + *offset, tensor.raw_data().size(), true);

  std::mt19937 random(1);
  size_t refused = 0, tried = 0;
  while (tried < 120) {
    size_t at = random() % good.size();
    if (isWeight[at])
      continue;
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ (1 + random() % 255));
    refused += !import(changed);
    ++tried;
  }
  EXPECT_GT(refused, tried / 4);
}

} // namespace
