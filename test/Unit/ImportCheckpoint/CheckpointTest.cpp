// The folder: index, shards, and the tensors that a family takes.

#include "TestCheckpoint.h"

#include "lib/Conversion/ImportCheckpoint/Checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace mlir::moec;
using moert::ElementType;

static std::string problemsOf(const TestCheckpoint &files) {
  auto checkpoint = Checkpoint::open(files.path());
  EXPECT_TRUE(checkpoint.isOk());
  return (*checkpoint)->status().toString();
}

static void expectPart(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in:\n" << text;
}

TEST(Patterns, StarsStandForAnyText) {
  EXPECT_TRUE(matchesPattern("*", ""));
  EXPECT_TRUE(matchesPattern("mtp.*", "mtp.layers.0"));
  EXPECT_TRUE(matchesPattern("*.inv_freq", "a.b.inv_freq"));
  EXPECT_TRUE(matchesPattern("a*b*c", "a-b-b-c"));
  EXPECT_TRUE(matchesPattern("exact", "exact"));
  EXPECT_FALSE(matchesPattern("exact", "exactly"));
  EXPECT_FALSE(matchesPattern("a*c", "ab"));
  EXPECT_FALSE(matchesPattern("", "a"));
  // Backtracking must stay polynomial.
  EXPECT_FALSE(matchesPattern("*a*a*a*a*a*a*a*a*b", std::string(2000, 'a')));
}

TEST(Checkpoint, SoundFolderHasNoProblems) {
  TestCheckpoint files;
  files.write();
  EXPECT_EQ(problemsOf(files), "ok");
}

TEST(Checkpoint, WithoutIndexAllNumberedShardsAreWanted) {
  TestCheckpoint files;
  files.withIndex = false;
  files.write();
  EXPECT_EQ(problemsOf(files), "ok");
  std::filesystem::remove(files.path("model-00001-of-00002.safetensors"));
  expectPart(problemsOf(files), "model-00001-of-00002.safetensors: cannot open the file");
}

TEST(Checkpoint, OtherSafetensorsFilesAreIgnored) {
  TestCheckpoint files;
  files.write();
  files.writeFile("reference.safetensors", "nonsense");
  EXPECT_EQ(problemsOf(files), "ok");
}

TEST(Checkpoint, LinksAreFollowed) {
  TestCheckpoint files;
  files.write();
  TestCheckpoint cache;
  for (auto &[name, tensors] : files.shards)
    std::filesystem::create_symlink(files.path(name), cache.path(name));
  cache.writeFile("config.json", files.readFile("config.json"));
  cache.writeFile("model.safetensors.index.json", files.readFile("model.safetensors.index.json"));
  EXPECT_EQ(problemsOf(cache), "ok");
}

TEST(Checkpoint, NoFolderIsAnError) {
  EXPECT_FALSE(Checkpoint::open("/nonexistent/checkpoint").isOk());
}

TEST(Checkpoint, EmptyFolderListsWhatIsMissing) {
  TestCheckpoint files;
  std::string text = problemsOf(files);
  expectPart(text, "config.json: cannot open the file");
  expectPart(text, "no weights: expected model.safetensors.index.json");
}

TEST(Checkpoint, IndexMayNotLeaveTheFolder) {
  for (const char *bad : {"../outside.safetensors", "sub/../../outside.safetensors", "/etc/passwd",
                          "", ".", "a//b"}) {
    TestCheckpoint files;
    files.write();
    files.weightMap["lm_head.weight"] = bad;
    files.customIndex = true;
    files.write();
    auto checkpoint = Checkpoint::open(files.path());
    ASSERT_TRUE(checkpoint.isOk());
    EXPECT_FALSE((*checkpoint)->status().isOk()) << bad;
  }
}

TEST(Checkpoint, LyingIndexIsNamed) {
  TestCheckpoint files;
  files.write();
  files.customIndex = true;
  files.weightMap["lm_head.weight"] = "model-00001-of-00002.safetensors";
  files.weightMap["ghost.weight"] = "model-00001-of-00002.safetensors";
  files.weightMap.erase("model.norm.weight");
  files.write();
  std::string text = problemsOf(files);
  expectPart(text, "tensor 'lm_head.weight' should be in 'model-00001-of-00002.safetensors', but "
                   "is in 'model-00002-of-00002.safetensors'");
  expectPart(text, "tensor 'ghost.weight' should be in 'model-00001-of-00002.safetensors', which "
                   "has no such tensor");
  expectPart(text,
             "tensor 'model.norm.weight' of 'model-00002-of-00002.safetensors' is not listed");
}

TEST(Checkpoint, IndexOfWrongTypes) {
  TestCheckpoint files;
  files.write();
  for (const char *bad : {"[]", "{}", R"({"weight_map": 3})", R"({"weight_map": {"a": 5}})", "{",
                          "", "null", R"({"weight_map": {"a": "x", "a": "y"}})"}) {
    files.writeFile("model.safetensors.index.json", bad);
    EXPECT_NE(problemsOf(files), "ok") << bad;
  }
}

TEST(Checkpoint, TensorInTwoShards) {
  TestCheckpoint files;
  files.shards["model-00001-of-00002.safetensors"]["lm_head.weight"] = {"BF16", {40, 64}};
  files.write();
  expectPart(problemsOf(files), "tensor 'lm_head.weight' is in two files");
}

TEST(Checkpoint, ProblemsOfAllShardsAreListed) {
  TestCheckpoint files;
  files.write();
  std::string shard = files.readFile("model-00001-of-00002.safetensors");
  files.writeFile("model-00001-of-00002.safetensors", shard.substr(0, shard.size() - 1));
  std::filesystem::remove(files.path("model-00002-of-00002.safetensors"));
  files.writeFile("config.json", "{\"a\": 1, \"a\": 2}");
  std::string text = problemsOf(files);
  expectPart(text, "config.json: the key 'a' occurs twice");
  expectPart(text, "model-00001-of-00002.safetensors: ");
  expectPart(text, "model-00002-of-00002.safetensors: cannot open the file");
}

TEST(Checkpoint, TruncationsAreErrors) {
  TestCheckpoint files;
  files.write();
  for (const char *name :
       {"config.json", "model.safetensors.index.json", "model-00002-of-00002.safetensors"}) {
    std::string whole = files.readFile(name);
    // Data bytes of a shard are all alike; its header is what matters.
    size_t step = std::string(name) == "config.json" ? 1 : 7;
    for (size_t size = 0; size < std::min<size_t>(whole.size(), 2000); size += step) {
      files.writeFile(name, whole.substr(0, size));
      ASSERT_NE(problemsOf(files), "ok") << name << " cut to " << size;
    }
    files.writeFile(name, whole);
  }
}

TEST(Checkpoint, TakeComparesShapeAndType) {
  TestCheckpoint files;
  files.write();
  auto opened = Checkpoint::open(files.path());
  ASSERT_TRUE(opened.isOk());
  Checkpoint &checkpoint = **opened;
  const ElementType floats[] = {ElementType::F32, ElementType::BF16};
  auto take = [&](const char *name, std::vector<int64_t> shape) {
    return checkpoint.take(name, shape, floats);
  };
  const CheckpointTensor *tensor = take("model.norm.weight", {64});
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->file, "model-00002-of-00002.safetensors");
  EXPECT_EQ(tensor->entry->bytes, 128u);
  EXPECT_EQ(take("model.norm.weight", {1, 64}), nullptr);
  EXPECT_EQ(take("lm_head.weight", {64, 40}), nullptr);
  EXPECT_EQ(take("nothing", {2, 3}), nullptr);
  EXPECT_EQ(take("model.layers.0.mlp.experts.down_proj_scales", {3, 64, 1}), nullptr);
  std::string text = checkpoint.status().toString();
  expectPart(text, "'lm_head.weight' of 'model-00002-of-00002.safetensors': expected shape [64, "
                   "40], found [40, 64]");
  expectPart(text, "tensor 'nothing' is missing; expected shape [2, 3]");
  expectPart(text, "expected element type f32 or bf16, found u8");
}
