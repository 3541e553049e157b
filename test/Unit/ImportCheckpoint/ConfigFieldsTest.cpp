// Every field of every family's config.json, missing and with values that it cannot have: the model
// imports, where the field does not matter, or one error lists what is wrong.

#include "StandIn.h"

#include "moec/Conversion/ImportCheckpoint.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>

#include <sys/resource.h>

using namespace mlir;
using namespace mlir::moec;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

/// Families' checkpoints; others differ from one of these in few fields.
const char *const families[] = {"deepseek-v32", "deepseek-v4", "deepseek-v4-publisher",
                                "glm-moe-dsa",  "kimi-linear", "mixtral",
                                "qwen3-moe",    "qwen3-next",  "qwen3.5-moe"};

class ConfigFields : public testing::TestWithParam<const char *> {
protected:
  ConfigFields() {
    std::string pattern = (fs::temp_directory_path() / "moec-fields-XXXXXX").string();
    folder = mkdtemp(pattern.data());
    copyStandIn(fs::path(MOEC_TEST_MODELS "/families") / GetParam() / "checkpoint", folder);
    config = json::parse(readFile(folder / "config.json"));
  }
  ~ConfigFields() override { fs::remove_all(folder); }

  /// The error, or nothing.
  std::string import(const json &changed) {
    writeStandIn(folder / "config.json", changed.dump());
    MLIRContext context(MLIRContext::Threading::DISABLED);
    std::vector<std::string> errors;
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      errors.push_back(diagnostic.str());
      return success();
    });
    bool imports = succeeded(importCheckpoint(folder.string(), {}, &context));
    EXPECT_EQ(errors.size(), imports ? 0u : 1u);
    std::string text = errors.empty() ? "" : errors[0];
    if (!imports)
      EXPECT_TRUE(text.starts_with(folder.string())) << text;
    return text;
  }

  fs::path folder;
  json config;
};

void collectFields(const json &value, const json::json_pointer &at,
                   std::vector<json::json_pointer> &fields) {
  if (!value.is_object())
    return;
  for (auto &[name, member] : value.items()) {
    fields.push_back(at / name);
    collectFields(member, at / name, fields);
  }
}

TEST_P(ConfigFields, AreCheckedOneByOne) {
  ASSERT_EQ(import(config), "");
  const json wrong[] = {nullptr,
                        "x",
                        -1,
                        0,
                        1.5,
                        int64_t(1) << 62,
                        1e300,
                        json::array({"x"}),
                        json::object({{"x", 1}})};
  std::vector<json::json_pointer> fields;
  collectFields(config, json::json_pointer(), fields);
  // Sanitized code takes its time; fuzzers try these fields, too.
#if __has_feature(address_sanitizer)
  constexpr size_t step = 9;
#else
  constexpr size_t step = 1;
#endif
  size_t refused = 0;
  for (size_t i = 0; i < fields.size(); i += step) {
    const json::json_pointer &field = fields[i];
    SCOPED_TRACE(field.to_string());
    json changed = config;
    changed[field.parent_pointer()].erase(field.back());
    refused += !import(changed).empty();
    for (const json &value : wrong) {
      SCOPED_TRACE(value.dump());
      changed = config;
      changed[field] = value;
      std::string error = import(changed);
      if (error.empty())
        continue;
      ++refused;
      // What is of a wrong type is named.
      bool isWrongType = value.is_structured() && !config[field].is_structured();
      if (isWrongType)
        EXPECT_NE(error.find(field.back()), std::string::npos) << error;
    }
    if (HasFailure())
      return;
  }
  EXPECT_GT(refused, fields.size() / step);
  // What a config claims is not what gets allocated.
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 2 << 20) << "KiB";
}

/// All of them wrong at once are one error, not one after the other.
TEST_P(ConfigFields, AreListedTogether) {
  json changed = config;
  std::vector<std::string> numbers;
  json *text = changed.contains("text_config") ? &changed["text_config"] : &changed;
  for (const char *name : {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
                           "num_experts_per_tok"})
    if (text->contains(name)) {
      (*text)[name] = -1;
      numbers.push_back(name);
    }
  ASSERT_GE(numbers.size(), 4u);
  std::string error = import(changed);
  for (const std::string &name : numbers)
    EXPECT_NE(error.find(name + ": expected an integer"), std::string::npos) << error;
  // Each of them once.
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringRef(error).split(parts, '\n');
  EXPECT_EQ(std::set<llvm::StringRef>(parts.begin(), parts.end()).size(), parts.size()) << error;
}

INSTANTIATE_TEST_SUITE_P(Families, ConfigFields, testing::ValuesIn(families), [](const auto &info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

} // namespace
