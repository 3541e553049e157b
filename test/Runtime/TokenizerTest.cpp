#include "runtime/session/Tokenizer.h"

#include "runtime/base/Json.h"
#include "runtime/base/Npy.h"
#include "test/Runtime/Support.h"

#include <algorithm>
#include <functional>

using namespace moert;
using namespace moert::test;

namespace {

const Tokenizer &tiny() {
  static const Tokenizer tokenizer = [] {
    std::string text = readFile(joinPath(MOERT_TEST_MODEL, "tokenizer.json"));
    auto parsed = Tokenizer::parse(text, "tokenizer.json");
    EXPECT_TRUE(isOk(parsed));
    return *std::move(parsed);
  }();
  return tokenizer;
}

// A tokenizer of 256 byte tokens (ids are the bytes) and some merges.
Json small() {
  Json vocab = Json::object();
  std::uint32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    std::uint32_t code = printable ? byte : next++;
    std::string text;
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      text += static_cast<char>(0xc0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 63));
    }
    vocab[text] = byte;
  }
  vocab["aa"] = 256;
  vocab["aaaa"] = 257;
  vocab["ab"] = 258;
  vocab["xyz"] = 259;
  return {
      {"added_tokens",
       {{{"id", 260}, {"content", "<|x|>"}, {"special", true}},
        {{"id", 261}, {"content", "<|x|>y"}, {"special", false}}}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"a a", "aa aa", "a b"}}}}};
}

std::vector<std::int32_t> encodeSmall(const Json &json, std::string_view text) {
  auto tokenizer = Tokenizer::parse(json.dump(), "t");
  EXPECT_TRUE(isOk(tokenizer));
  auto ids = tokenizer->encode(text);
  EXPECT_TRUE(isOk(ids));
  return *ids;
}

using Ids = std::vector<std::int32_t>;

} // namespace

TEST(Tokenizer, EncodesTheValidationTextsExactly) {
  auto texts =
      parseJson(readFile(joinPath(MOERT_TEST_MODEL, "valid_texts.json")), "valid_texts.json");
  ASSERT_TRUE(isOk(texts));
  auto file = moert::File::open(joinPath(MOERT_TEST_MODEL, "valid_tokens.npy"));
  ASSERT_TRUE(isOk(file));
  auto array = readNpy(*file);
  ASSERT_TRUE(isOk(array));
  auto expected = array->integers(0, 2047);
  ASSERT_TRUE(isOk(expected));
  ASSERT_EQ(expected->size(), 22849u);
  std::vector<std::int64_t> found;
  for (const Json &text : *texts) {
    auto value = text.get<std::string>();
    auto ids = tiny().encode(value);
    ASSERT_TRUE(isOk(ids));
    EXPECT_EQ(tiny().decode(*ids), value);
    found.push_back(tiny().find("<|bos|>"));
    found.insert(found.end(), ids->begin(), ids->end());
    found.push_back(tiny().find("<|eos|>"));
  }
  EXPECT_EQ(found, *expected);
}

TEST(Tokenizer, EveryUnicodeCharacterComesBack) {
  std::string text =
      "naïve Ωμέγα 漢字かな 🤖👩‍👩‍👧 \t\n\r\n  \u00a0\u0085 mixed123456 "
      "don't "
      "<|bos|> end";
  auto ids = tiny().encode(text);
  ASSERT_TRUE(isOk(ids));
  EXPECT_EQ(tiny().decode(*ids, true), text);
  EXPECT_EQ(std::count(ids->begin(), ids->end(), 0), 1);
  EXPECT_EQ(tiny().decode(*ids).find("<|bos|>"), std::string::npos);
}

TEST(Tokenizer, StreamsWholeCharacters) {
  auto ids = tiny().encode("a🤖b漢");
  ASSERT_TRUE(isOk(ids));
  StreamDecoder decoder(tiny());
  std::string text;
  for (std::int32_t id : *ids) {
    std::string piece = decoder.add(id);
    EXPECT_EQ(piece.find("\xef\xbf\xbd"), std::string::npos);
    text += piece;
  }
  EXPECT_EQ(text + decoder.finish(), "a🤖b漢");
  // Cut in the middle of a character.
  StreamDecoder cut(tiny());
  std::string head = cut.add((*ids)[0]) + cut.add((*ids)[1]);
  EXPECT_EQ(head, "a");
  EXPECT_EQ(cut.finish(), "\xef\xbf\xbd");
  EXPECT_EQ(cut.add(-1) + cut.add(1 << 30), "");
}

TEST(Tokenizer, MergesByRankFromTheLeft) {
  Json json = small();
  EXPECT_EQ(encodeSmall(json, "aaa"), (Ids{256, 'a'}));
  EXPECT_EQ(encodeSmall(json, "aaaaa"), (Ids{257, 'a'}));
  EXPECT_EQ(encodeSmall(json, "aab"), (Ids{256, 'b'}));
  EXPECT_EQ(encodeSmall(json, "xab"), (Ids{'x', 258}));
  EXPECT_EQ(encodeSmall(json, "xyz"), (Ids{'x', 'y', 'z'}));
  EXPECT_EQ(encodeSmall(json, ""), Ids());
  // Of two added tokens the longer one.
  EXPECT_EQ(encodeSmall(json, "aa<|x|>yb<|x|><|x"), (Ids{256, 261, 'b', 260, '<', '|', 'x'}));
  // Bytes that are no UTF-8.
  EXPECT_EQ(encodeSmall(json, "\xff"), (Ids{0xef, 0xbf, 0xbd}));
  json["model"]["ignore_merges"] = true;
  EXPECT_EQ(encodeSmall(json, "xyz"), (Ids{259}));
  json["model"]["merges"] = Json::array({Json::array({"a", "b"})});
  EXPECT_EQ(encodeSmall(json, "ab ab"), (Ids{258, ' ', 258}));
}

TEST(Tokenizer, SplitsBeforeMerging) {
  Json json = small();
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"String", "-"}}}, {"behavior", "Isolated"}},
        {{"type", "Digits"}, {"individual_digits", true}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  json["model"]["vocab"]["1a"] = 300;
  json["model"]["vocab"]["-a"] = 301;
  json["model"]["vocab"]["Ġa"] = 302;
  json["model"]["merges"] = {"1 a", "- a", "Ġ a"};
  EXPECT_EQ(encodeSmall(json, "1a-a a"), (Ids{'1', 'a', '-', 'a', 302}));
  json["pre_tokenizer"]["pretokenizers"].erase(0);
  EXPECT_EQ(encodeSmall(json, "1a-a a"), (Ids{'1', 'a', 301, 302}));
}

TEST(Tokenizer, UnsupportedFieldsAreListedTogether) {
  Json json = small();
  json["normalizer"] = {{"type", "Precompiled"}};
  json["model"]["dropout"] = 0.5;
  json["decoder"]["type"] = "WordPiece";
  json["post_processor"] = {{"type", "BertProcessing"}};
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Dropped"}},
        {{"type", "UnicodeScripts"}}}}};
  json["added_tokens"][0]["lstrip"] = 7;
  auto tokenizer = Tokenizer::parse(json.dump(), "tokenizer.json");
  for (const char *field :
       {"normalizer: the normalizer 'Precompiled' is not supported; NFC, NFD", "dropout",
        "decoder: the decoder 'WordPiece' is not supported; ByteLevel", "'BertProcessing'",
        "'Dropped'", "pattern: the pattern '(a' is not understood", "'UnicodeScripts'",
        "added_tokens[0].lstrip"})
    EXPECT_TRUE(fails(tokenizer, ErrorCode::Unsupported, field));
}

TEST(Tokenizer, HostileVocabulariesAreErrors) {
  auto expect = [](Json json, const char *says) {
    EXPECT_TRUE(fails(Tokenizer::parse(json.dump(), "t"), ErrorCode::Unsupported, says));
  };
  Json json = small();
  json["model"]["vocab"]["zz"] = INT64_C(1) << 40;
  expect(json, "model.vocab.zz: expected an integer from 0");
  json = small();
  json["model"]["vocab"]["zz"] = 65;
  expect(json, "taken twice");
  json = small();
  json["model"]["merges"] = Json::array({"a", "q q", Json::array({"a"}), 7, "a a", "a a"});
  expect(json, "5 problems");
  json = small();
  json["model"].erase("vocab");
  expect(json, "model.vocab: is missing");
  json = small();
  json["added_tokens"][0]["id"] = -1;
  expect(json, "added_tokens[0].id");
  EXPECT_FALSE(Tokenizer::parse("[]", "t").isOk());
  EXPECT_FALSE(Tokenizer::parse("{", "t").isOk());
}

TEST(Tokenizer, OddFormsAreUnderstoodOrNamed) {
  auto parse = [](const Json &json) { return Tokenizer::parse(json.dump(), "t").status(); };
  Json json = small();
  json["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}}, {{"type", "TemplateProcessing"}, {"single", Json::array()}}}}};
  json["model"].erase("type");
  json["model"]["dropout"] = 0;
  json["model"]["continuing_subword_prefix"] = "";
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Digits"}, {"individual_digits", false}},
        {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"use_regex", false}}}}};
  EXPECT_TRUE(isOk(parse(json)));
  EXPECT_EQ(encodeSmall(json, "a12"), (Ids{' ', 'a', ' ', '1', '2'})); // each piece gets its space
  struct Case {
    const char *says;
    std::function<void(Json &)> change;
  };
  const Case cases[] = {
      {"the type 'WordPiece' is not supported", [](Json &j) { j["model"]["type"] = "WordPiece"; }},
      {"end_of_word_suffix is not supported",
       [](Json &j) { j["model"]["end_of_word_suffix"] = "</w>"; }},
      {"model.vocab: expected an object", [](Json &j) { j["model"]["vocab"] = Json::array(); }},
      {"model.merges: expected an array", [](Json &j) { j["model"]["merges"] = 7; }},
      {"a token without text", [](Json &j) { j["model"]["vocab"][""] = 300; }},
      {"model.vocab.zz: expected an integer", [](Json &j) { j["model"]["vocab"]["zz"] = "7"; }},
      {"the vocabulary lacks 'Q\\x0a'", [](Json &j) { j["model"]["merges"] = {"Q\n a"}; }},
      {"a merge has two sides",
       [](Json &j) {
         j["model"]["merges"] = Json::array({Json::array({"a", 7})});
       }},
      {"the token has no text", [](Json &j) { j["added_tokens"][0]["content"] = ""; }},
      {"the vocabulary has 'aa' as 256", [](Json &j) { j["added_tokens"][0]["content"] = "aa"; }},
      {"truncation: is not supported",
       [](Json &j) {
         j["truncation"] = {{"max_length", 5}};
       }},
      {"decoder: is missing",
       [](Json &j) {
         j["pre_tokenizer"] = nullptr;
         j["decoder"] = nullptr;
       }},
      {"decoder and pre_tokenizer disagree", [](Json &j) { j["pre_tokenizer"] = nullptr; }},
      {"the scheme 'last' is not supported",
       [](Json &j) {
         j["pre_tokenizer"] = {{"type", "Metaspace"}, {"prepend_scheme", "last"}};
       }},
      {"the replacement has 0 bytes",
       [](Json &j) {
         j["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", ""}};
       }},
      {"the text has 100 bytes",
       [](Json &j) {
         j["normalizer"] = {{"type", "Prepend"}, {"prepend", std::string(100, 'x')}};
       }},
      {"content is longer than the pattern",
       [](Json &j) {
         j["decoder"] = {{"type", "Replace"}, {"pattern", {{"String", "x"}}}, {"content", "yy"}};
       }},
      {"Strip is supported after Fuse",
       [](Json &j) {
         j["decoder"] = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
       }},
      {"the vocabulary lacks '<unk>'",
       [](Json &j) {
         j["pre_tokenizer"] = nullptr;
         j["decoder"] = {{"type", "Fuse"}};
         j["model"]["unk_token"] = "<unk>";
       }},
      {"nothing is left of the token",
       [](Json &j) {
         j["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
         j["added_tokens"][1]["content"] = "  ";
         j["added_tokens"][1]["normalized"] = true;
       }},
      {"a step after ByteLevel",
       [](Json &j) {
         Json step = j["pre_tokenizer"];
         j["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", Json::array({step, step})}};
       }},
      {"pre_tokenizer.pattern.String: is missing",
       [](Json &j) {
         j["pre_tokenizer"] = {
             {"type", "Split"}, {"behavior", "Isolated"}, {"pattern", Json::object()}};
       }},
      {"the pattern has 70000 bytes",
       [](Json &j) {
         j["pre_tokenizer"] = {{"type", "Split"},
                               {"behavior", "Isolated"},
                               {"pattern", {{"String", std::string(70000, 'x')}}}};
       }},
  };
  for (const Case &each : cases) {
    Json changed = small();
    each.change(changed);
    EXPECT_TRUE(fails(parse(changed), ErrorCode::Unsupported, each.says));
  }
  // Sequences in sequences, too deep.
  const std::pair<const char *, const char *> lists[] = {{"pre_tokenizer", "pretokenizers"},
                                                         {"post_processor", "processors"},
                                                         {"normalizer", "normalizers"},
                                                         {"decoder", "decoders"}};
  for (const auto &[field, list] : lists) {
    Json changed = small(), deep = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
    for (int i = 0; i < 12; ++i)
      deep = {{"type", "Sequence"}, {list, Json::array({deep})}};
    changed[field] = deep;
    EXPECT_TRUE(fails(parse(changed), ErrorCode::Unsupported, "'Sequence' is not supported"));
  }
}

TEST(Tokenizer, AVocabularyWithoutSomeBytes) {
  Json json = small();
  json["model"]["vocab"].erase("Q");
  json["model"]["vocab"]["\u4e2d"] = 70; // not written in the alphabet: reachable by its id only
  auto tokenizer = Tokenizer::parse(json.dump(), "t");
  EXPECT_TRUE(fails(tokenizer, ErrorCode::Unsupported, "taken twice"));
  json["model"]["vocab"]["\u4e2d"] = 81; // Q's
  tokenizer = Tokenizer::parse(json.dump(), "t");
  ASSERT_TRUE(isOk(tokenizer));
  EXPECT_TRUE(
      fails(tokenizer->encode("aQ"), ErrorCode::Unsupported, "no token for a byte of 'aQ'"));
  std::int32_t id = 81;
  EXPECT_EQ(tokenizer->decode({&id, 1}), "\u4e2d");
  EXPECT_EQ(tokenizer->find("Q"), -1);
  EXPECT_EQ(tokenizer->find("aa"), 256);
  EXPECT_EQ(tokenizer->size(), 262u);
}

TEST(Tokenizer, EmptyMatchesCut) {
  Json json = small();
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", "(?=b)|$"}}}, {"behavior", "Isolated"}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  EXPECT_EQ(encodeSmall(json, "abab"), (Ids{'a', 'b', 'a', 'b'})); // "ab" would merge otherwise
  EXPECT_EQ(encodeSmall(json, "aa"), (Ids{256}));
}

TEST(Tokenizer, ChangedBytesAreSurvived) {
  std::string good = small().dump();
  for (std::size_t i = 0; i < good.size(); i += 3) {
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ 0x11);
    if (auto tokenizer = Tokenizer::parse(changed, "t"); tokenizer.isOk())
      (void)tokenizer->encode("aaab <|x|> xyz \xf0\x9f");
  }
}

TEST(Tokenizer, LongAndHostileTextsEnd) {
  Json json = small();
  std::string repeated(1 << 20, 'a');
  EXPECT_EQ(encodeSmall(json, repeated).size(), repeated.size() / 4);
  json["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", "(a+)+$"}}}, {"behavior", "Isolated"}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  auto tokenizer = Tokenizer::parse(json.dump(), "t");
  ASSERT_TRUE(isOk(tokenizer));
  EXPECT_TRUE(fails(tokenizer->encode(std::string(5000, 'a') + "b"), ErrorCode::Unsupported,
                    "the tokenizer's pattern fails"));
}
