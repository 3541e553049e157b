// Ids and texts that the libraries `tokenizers` and `tiktoken` give for tokenizers of every
// family's form: scripts/tokenizers/make_fixtures.py writes them.
#include "runtime/session/TiktokenFiles.h"
#include "runtime/session/Tokenizer.h"
#include "runtime/session/Utf8.h"
#include "test/Runtime/Support.h"

using namespace moert;
using namespace moert::test;

namespace {

class TokenizerFixtures : public testing::TestWithParam<const char *> {};

Result<Tokenizer> makeTokenizer(const Json &fixture) {
  if (fixture.contains("tokenizer"))
    return Tokenizer::parse(fixture["tokenizer"].dump(), "tokenizer.json");
  MOERT_ASSIGN_OR_RETURN(std::string json,
                         tiktokenToJson(fixture["ranks"].get_ref<const std::string &>(), Json(),
                                        fixture["tokenizer_config"]));
  return Tokenizer::parse(json, "tokenizer.json");
}

} // namespace

TEST_P(TokenizerFixtures, GiveTheLibrarysIdsAndTexts) {
  std::string path = joinPath(MOERT_TEST_TOKENIZERS, std::string(GetParam()) + ".json");
  auto fixture = parseJson(readFile(path), path);
  ASSERT_TRUE(isOk(fixture));
  auto tokenizer = makeTokenizer(*fixture);
  ASSERT_TRUE(isOk(tokenizer));
  ASSERT_GT((*fixture)["cases"].size(), 20u);
  for (const Json &each : (*fixture)["cases"]) {
    auto text = each["text"].get<std::string>();
    auto ids = tokenizer->encode(text);
    ASSERT_TRUE(isOk(ids));
    EXPECT_EQ(*ids, each["ids"].get<std::vector<std::int32_t>>()) << text;
    EXPECT_EQ(tokenizer->decode(*ids, true), each["decoded"].get<std::string>());
    // Token by token the same text arrives, never a part of a character.
    StreamDecoder decoder(*tokenizer, true);
    std::string streamed;
    for (std::int32_t id : *ids) {
      std::string piece = decoder.add(id);
      std::string whole;
      EXPECT_EQ(appendUtf8(whole, piece, false), piece.size());
      streamed += piece;
    }
    EXPECT_EQ(streamed + decoder.finish(), each["decoded"].get<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TokenizerFixtures,
                         testing::Values("qwen3", "qwen35", "gpt_oss", "glm", "deepseek_v3", "gpt2",
                                         "other_steps", "words", "mixtral", "metaspace", "unknown",
                                         "kimi"),
                         [](const auto &info) { return std::string(info.param); });
