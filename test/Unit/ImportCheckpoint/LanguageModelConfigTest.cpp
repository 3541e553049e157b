#include "lib/Conversion/ImportCheckpoint/LanguageModelConfig.h"

#include "TestCheckpoint.h"

#include <gtest/gtest.h>

using namespace mlir::moec;
using Ids = std::vector<int64_t>;

namespace {

class LanguageModelConfigTest : public testing::Test {
protected:
  TestCheckpoint files;
  std::string problems;

  LanguageModelConfig read() {
    files.config["vocab_size"] = 64;
    files.config["bos_token_id"] = 1;
    files.config["eos_token_id"] = 2;
    files.write();
    auto checkpoint = Checkpoint::open(files.path());
    EXPECT_TRUE(checkpoint.isOk());
    LanguageModelConfig result = readLanguageModelConfig(**checkpoint);
    problems = (*checkpoint)->status().toString();
    return result;
  }
  // A tokenizer.json with this template.
  void writeTemplate(const std::string &single, const std::string &ids) {
    files.writeFile("tokenizer.json",
                    R"({"post_processor": {"type": "TemplateProcessing", "single": )" + single +
                        R"(, "special_tokens": {"<s>": {"ids": )" + ids + "}}}}");
  }
  static constexpr const char *begins =
      R"([{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}])";
};

} // namespace

TEST_F(LanguageModelConfigTest, StopTokensAreOneOrSeveral) {
  EXPECT_EQ(read().eosTokens, Ids{2});
  files.writeFile("generation_config.json", R"({"eos_token_id": [5, 6], "bos_token_id": 7})");
  LanguageModelConfig config = read();
  EXPECT_EQ(config.eosTokens, (Ids{5, 6}));
  EXPECT_EQ(config.bosToken, 7);
  files.writeFile("generation_config.json", R"({"eos_token_id": [5, 64]})");
  read();
  EXPECT_NE(problems.find("eos_token_id[1]"), std::string::npos) << problems;
}

TEST_F(LanguageModelConfigTest, TheFieldDecidesAndThenTheTemplate) {
  EXPECT_FALSE(read().addBos);
  writeTemplate(begins, "[9]");
  LanguageModelConfig config = read();
  EXPECT_TRUE(config.addBos);
  EXPECT_EQ(config.bosToken, 9);
  files.writeFile("tokenizer_config.json", R"({"add_bos_token": false})");
  EXPECT_FALSE(read().addBos);
  files.writeFile("tokenizer_config.json", R"({"add_bos_token": true})");
  config = read();
  EXPECT_TRUE(config.addBos);
  EXPECT_EQ(config.bosToken, 1);
}

TEST_F(LanguageModelConfigTest, ATemplateHasAtMostOneTokenInFront) {
  writeTemplate(R"([{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<s>"}}])", "[9]");
  EXPECT_FALSE(read().addBos);
  for (const char *ids : {"[9, 10]", "[64]"}) {
    writeTemplate(begins, ids);
    read();
    EXPECT_NE(problems.find("in front of a text"), std::string::npos) << problems;
  }
}

TEST_F(LanguageModelConfigTest, TakesRanksWhereThereIsNoTokenizerJson) {
  EXPECT_EQ(read().tokenizer, "");
  files.writeFile("tiktoken.model", "");
  EXPECT_EQ(read().tokenizer, "tiktoken.model");
  writeTemplate("[]", "[]");
  EXPECT_EQ(read().tokenizer, "tokenizer.json");
}
