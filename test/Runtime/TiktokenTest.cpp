#include "runtime/session/TiktokenFiles.h"

#include "runtime/session/Tokenizer.h"
#include "test/Runtime/Support.h"

#include <functional>

using namespace moert;
using namespace moert::test;

namespace {

std::string base64(std::string_view bytes) {
  static constexpr char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned bits = 0;
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j)
      text += i + j > bytes.size() ? '=' : digits[bits >> (18 - 6 * j) & 63];
  }
  return text;
}

std::string line(std::string_view token, std::size_t rank) {
  return base64(token) + " " + std::to_string(rank) + "\n";
}

// 256 bytes and three more.
std::string ranks() {
  std::string text;
  for (unsigned byte = 0; byte < 256; ++byte)
    text += line(std::string(1, static_cast<char>(byte)), byte);
  return text + line("bc", 256) + line("ab", 257) + line("abc", 258);
}

const Json kimi = {{"model_type", "kimi_linear"}};

} // namespace

TEST(Tiktoken, MergesByRank) {
  Json names = {{"added_tokens_decoder",
                 {{"259", {{"content", "[BOS]"}, {"special", true}}},
                  {"260", {{"content", "<think>"}, {"special", false}}},
                  {"7", {{"content", "not looked at"}}}}}};
  auto json = tiktokenToJson(ranks(), kimi, names);
  ASSERT_TRUE(isOk(json));
  auto tokenizer = Tokenizer::parse(*json, "t");
  ASSERT_TRUE(isOk(tokenizer));
  using Ids = std::vector<std::int32_t>;
  EXPECT_EQ(*tokenizer->encode("abc"), (Ids{258}));
  EXPECT_EQ(*tokenizer->encode("abbc"), (Ids{257, 256}));
  EXPECT_EQ(*tokenizer->encode("abcd"), (Ids{258, 'd'})); // "bc" first, and then "a" + "bc"
  EXPECT_EQ(*tokenizer->encode("[BOS]<think><|reserved_token_261|>"), (Ids{259, 260, 261}));
  EXPECT_EQ(tokenizer->size(), 259u + 256u);
  Ids ids = {259, 260, 261, 258};
  EXPECT_EQ(tokenizer->decode(ids), "<think>abc");
  EXPECT_EQ(tokenizer->decode(ids, true), "[BOS]<think><|reserved_token_261|>abc");
}

TEST(Tiktoken, HostileFilesAreErrors) {
  struct Case {
    const char *says;
    std::function<void(std::string &)> change;
  };
  const Case cases[] = {
      {"line 260: expected 'BASE64 RANK', found 'YQ 300'", [](auto &t) { t += "YQ 300\n"; }},
      {"found 'Y!=='", [](auto &t) { t += "Y!==\n"; }},
      {"found 'YQ== -1'", [](auto &t) { t += "YQ== -1\n"; }},
      {"found 'YQ== 99999999999'", [](auto &t) { t += "YQ== 99999999999\n"; }},
      {"found 'YR== 259'", [](auto &t) { t += "YR== 259\n"; }}, // bits behind the byte
      {"found 'YQ==  259'", [](auto &t) { t += "YQ==  259\n"; }},
      {"found ' 259'", [](auto &t) { t += " 259\n"; }},
      {"the rank 300 among 260 tokens", [](auto &t) { t += line("xy", 300); }},
      {"the rank 256 occurs twice", [](auto &t) { t += line("xy", 256); }},
      {"the token of rank 259 has another rank", [](auto &t) { t += line("ab", 259); }},
      {"255 of the 256 bytes are no tokens", [](auto &t) { t = line("a", 0); }},
      {"256 of the 256 bytes are no tokens", [](auto &t) { t = ""; }},
  };
  for (const Case &each : cases) {
    std::string text = ranks();
    each.change(text);
    EXPECT_TRUE(fails(tiktokenToJson(text, kimi, Json()), ErrorCode::InvalidData, each.says));
  }
  std::string text = ranks() + line(std::string(5000, 'a'), 259);
  auto json = tiktokenToJson(text, kimi, Json());
  ASSERT_TRUE(isOk(json));
  EXPECT_TRUE(fails(Tokenizer::parse(*json, "t"), ErrorCode::Unsupported, "a token of 5000 bytes"));
}

TEST(Tiktoken, UnknownFamiliesAreErrors) {
  EXPECT_TRUE(fails(tiktokenToJson(ranks(), {{"model_type", "other"}}, Json()),
                    ErrorCode::Unsupported, "not known for the model type 'other'"));
  EXPECT_TRUE(isOk(tiktokenToJson(ranks(), Json(), {{"tokenizer_class", "TikTokenTokenizer"}})));
  EXPECT_TRUE(fails(tiktokenToJson(ranks(), kimi, {{"added_tokens_decoder", 7}}),
                    ErrorCode::InvalidData, "added_tokens_decoder"));
  // Two special tokens of one text.
  Json same = {
      {"added_tokens_decoder", {{"259", {{"content", "a"}}}, {"260", {{"content", "a"}}}}}};
  auto json = tiktokenToJson(ranks(), kimi, same);
  ASSERT_TRUE(isOk(json));
  EXPECT_TRUE(
      fails(Tokenizer::parse(*json, "t"), ErrorCode::Unsupported, "the vocabulary has 'a'"));
}

TEST(Tiktoken, LongAndChangedInputsEnd) {
  auto json = tiktokenToJson(ranks(), kimi, Json());
  ASSERT_TRUE(isOk(json));
  auto tokenizer = Tokenizer::parse(*json, "t");
  ASSERT_TRUE(isOk(tokenizer));
  for (const char *unit : {"a", "A", "é", " ", "1", "漢", "\n", "!", "ab", "Ab", "\u0301", " a"}) {
    std::string text;
    while (text.size() < 300'000)
      text += unit;
    auto ids = tokenizer->encode(text);
    ASSERT_TRUE(isOk(ids)) << unit;
    EXPECT_EQ(tokenizer->decode(*ids), text);
  }
  std::string good = ranks();
  for (std::size_t i = 0; i < good.size(); i += 5) {
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ 0x11);
    (void)tiktokenToJson(changed, kimi, Json());
  }
}
