// Inputs that broke other loaders, each tried on a checkpoint folder: an error that names the file,
// never a crash, a hang or an allocation beyond the file's own size.

#include "TestCheckpoint.h"

#include "moec/Conversion/ImportCheckpoint.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sys/stat.h>

using namespace mlir;
using namespace mlir::moec;

static const std::string shard = "model-00001-of-00002.safetensors";

// The errors of an import, which must fail, as one text.
static std::string importErrors(const TestCheckpoint &files) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  std::string text;
  int count = 0;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    text += diagnostic.str() + "\n";
    ++count;
    return success();
  });
  EXPECT_TRUE(failed(importCheckpoint(files.path(), {}, &context)));
  EXPECT_EQ(count, 1) << text;
  return text;
}

static void expectPart(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in:\n" << text;
}

// The first shard with its header replaced; its data stays.
static void replaceHeader(TestCheckpoint &files, const std::string &header, uint64_t length) {
  std::string content;
  for (int i = 0; i < 8; ++i)
    content += char(length >> 8 * i);
  files.write();
  files.writeFile(shard, content + header + std::string(64, '\0'));
}

static void replaceHeader(TestCheckpoint &files, const std::string &header) {
  replaceHeader(files, header, header.size());
}

TEST(HostileCheckpoint, HeaderLengthBeyondTheFile) {
  for (uint64_t length : {uint64_t(1000), uint64_t(1) << 40, UINT64_MAX, UINT64_MAX - 7}) {
    TestCheckpoint files;
    replaceHeader(files, "{}", length);
    expectPart(importErrors(files), shard + ": the header claims");
  }
}

TEST(HostileCheckpoint, ProductOfDimensionsWraps) {
  // 2^32 * 2^32 elements wrap to none.
  TestCheckpoint files;
  replaceHeader(files, R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296],
                          "data_offsets": [0, 64]}})");
  expectPart(importErrors(files), "takes more than 2^63 bytes");
}

TEST(HostileCheckpoint, CountTimesSizeWraps) {
  TestCheckpoint files;
  replaceHeader(files, R"({"a": {"dtype": "F32", "shape": [4611686018427387920],
                          "data_offsets": [0, 64]}})");
  expectPart(importErrors(files), "takes more than 2^63 bytes");
}

TEST(HostileCheckpoint, DeclaredShapeLargerThanTheData) {
  TestCheckpoint files;
  replaceHeader(files, R"({"a": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 64]}})");
  expectPart(importErrors(files),
             "a: shape [1000] of f32 takes 4000 bytes, but the offsets give 64");
}

TEST(HostileCheckpoint, OffsetsOutOfRange) {
  TestCheckpoint files;
  replaceHeader(files, R"({"a": {"dtype": "U8", "shape": [64], "data_offsets": [64, 128]}})");
  expectPart(importErrors(files), "do not lie within the 64 bytes of data");
  replaceHeader(files,
                R"({"a": {"dtype": "U8", "shape": [64],
                    "data_offsets": [18446744073709551615, 63]}})");
  expectPart(importErrors(files), "a.data_offsets[0]");
}

TEST(HostileCheckpoint, OverlappingTensors) {
  TestCheckpoint files;
  replaceHeader(files, R"({"a": {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]},
                           "b": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}})");
  expectPart(importErrors(files), "overlap");
}

TEST(HostileCheckpoint, DuplicateNames) {
  TestCheckpoint files;
  replaceHeader(files, R"({"a": {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]},
                           "a": {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]}})");
  expectPart(importErrors(files), "'a' occurs twice");
}

TEST(HostileCheckpoint, UnknownType) {
  TestCheckpoint files;
  replaceHeader(files, R"({"a": {"dtype": "F31", "shape": [64], "data_offsets": [0, 64]}})");
  expectPart(importErrors(files), "tensor 'a' of 'model-00001-of-00002.safetensors' is not part");
}

TEST(HostileCheckpoint, MetadataDoesNotBecomeATensor) {
  TestCheckpoint files;
  files.write();
  replaceHeader(files, R"({"__metadata__": {"shape": [9999999999], "a": 5},
                           "a": {"dtype": "U8", "shape": [64], "data_offsets": [0, 64]}})");
  expectPart(importErrors(files), "__metadata__");
}

TEST(HostileCheckpoint, DeepNesting) {
  for (const char *name : {"config.json", "model.safetensors.index.json"}) {
    TestCheckpoint files;
    files.write();
    files.writeFile(name, "{\"a\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}");
    expectPart(importErrors(files), std::string(name) + ": nested more than");
  }
}

TEST(HostileCheckpoint, ConfigThatIsNoObject) {
  for (const char *content : {"null", "5", "[]", "\"x\"", "true"}) {
    TestCheckpoint files;
    files.write();
    files.writeFile("config.json", content);
    expectPart(importErrors(files),
               std::string("config.json: expected an object, found ") + content);
  }
}

TEST(HostileCheckpoint, NamesWithControlBytesAreEscaped) {
  TestCheckpoint files;
  files.shards[shard]["evil\n\x1b[31m"] = {"U8", {1}};
  files.write();
  std::string text = importErrors(files);
  expectPart(text, "'evil\\x0a\\x1b[31m'");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(HostileCheckpoint, ZeroSizedTensorIsNoStandIn) {
  TestCheckpoint files;
  files.tensor("model.norm.weight").shape = {0};
  files.write();
  expectPart(importErrors(files), "expected shape [64], found [0]");
}

TEST(HostileCheckpoint, PipesAndFoldersInPlaceOfFiles) {
  // A pipe that nobody writes to must not block.
  for (const std::string &name :
       {std::string("config.json"), std::string("model.safetensors.index.json"), shard,
        std::string("generation_config.json")}) {
    for (bool isPipe : {true, false}) {
      TestCheckpoint files;
      files.write();
      std::filesystem::remove(files.path(name));
      if (isPipe)
        ASSERT_EQ(mkfifo(files.path(name).c_str(), 0600), 0);
      else
        std::filesystem::create_directory(files.path(name));
      MLIRContext context(MLIRContext::Threading::DISABLED);
      ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
      auto module = importCheckpoint(files.path(), {}, &context);
      // What is no regular file counts as absent where a file may be absent.
      bool mayBeAbsent = name == "generation_config.json" || name == "model.safetensors.index.json";
      EXPECT_EQ(succeeded(module), mayBeAbsent) << name;
    }
  }
}

TEST(HostileCheckpoint, ConfigOfWrongTypesThroughout) {
  TestCheckpoint files;
  const nlohmann::json wrong[] = {nullptr,
                                  true,
                                  "x",
                                  -7,
                                  1.5,
                                  1e300,
                                  nlohmann::json::array({1}),
                                  {{"a", 1}},
                                  std::numeric_limits<uint64_t>::max()};
  nlohmann::json sound = files.config;
  for (auto &[key, value] : sound.items())
    for (const nlohmann::json &other : wrong) {
      files.config = sound;
      files.config[key] = other;
      files.write();
      MLIRContext context(MLIRContext::Threading::DISABLED);
      ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
      // Some are legitimate (null means absent); none may crash.
      (void)importCheckpoint(files.path(), {}, &context);
    }
}

TEST(HostileCheckpoint, ByteChangesOfConfigAndHeaders) {
  TestCheckpoint files;
  files.write();
  for (const std::string &name : {std::string("config.json"), shard}) {
    std::string whole = files.readFile(name);
    for (size_t i = 0; i < std::min<size_t>(whole.size(), 700); i += 7)
      for (unsigned char change : {0x01, 0x80}) {
        std::string changed = whole;
        changed[i] = char(changed[i] ^ change);
        files.writeFile(name, changed);
        MLIRContext context(MLIRContext::Threading::DISABLED);
        ScopedDiagnosticHandler silent(&context, [](Diagnostic &) { return success(); });
        (void)importCheckpoint(files.path(), {}, &context);
      }
    files.writeFile(name, whole);
  }
  EXPECT_EQ(files.readFile(shard), TestCheckpoint::safetensors(files.shards[shard]));
}
