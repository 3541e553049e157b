// tokenizer.json to a Tokenizer.
#include "runtime/base/Json.h"
#include "runtime/session/TokenizerContent.h"
#include "runtime/session/Utf8.h"

#include <algorithm>

namespace moert {

namespace {

// GPT-2's own pattern, which a ByteLevel pre-tokenizer with use_regex stands for.
constexpr const char *byteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Byte-level vocabularies write each byte as one printable character: printable Latin-1 as itself,
// the others from U+0100 on.
class ByteAlphabet {
public:
  ByteAlphabet() {
    std::uint32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      bool printable =
          (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      std::string character;
      appendCodePoint(character, printable ? byte : next++);
      bytes.emplace(std::move(character), static_cast<char>(byte));
    }
  }
  // Whether `token` is written in the alphabet; if so, the bytes it stands for.
  bool decode(std::string_view token, std::string &result) const {
    result.clear();
    while (!token.empty()) {
      Utf8Unit unit = nextUtf8(token);
      auto found = bytes.find(std::string(token.substr(0, unit.bytes)));
      if (found == bytes.end())
        return false;
      result += found->second;
      token.remove_prefix(unit.bytes);
    }
    return true;
  }

private:
  std::unordered_map<std::string, char> bytes;
};

class Reader {
public:
  Reader(Tokenizer::Content &content, Problems &problems) : content(content), problems(problems) {}

  void read(const JsonView &document) {
    for (const char *field : {"truncation", "padding", "normalizer"})
      if (JsonView value = document.optional(field))
        value.complain("is not supported");
    JsonView model = document["model"];
    vocabulary(model);
    merges(model);
    for (const JsonView &token : document.optional("added_tokens").elements())
      addedToken(token);
    finishAdded();
    bool byteLevel = false;
    if (JsonView splitting = document.optional("pre_tokenizer"))
      preTokenizer(splitting, byteLevel, 0);
    if (!byteLevel)
      problems.add("pre_tokenizer: only byte-level tokenizers are supported, and it has no "
                   "ByteLevel step");
    postProcessor(document.optional("post_processor"), 0);
    if (JsonView decoder = document.optional("decoder"))
      if (auto type = decoder["type"].string(); type && *type != "ByteLevel")
        decoder.complain("the decoder " + inQuotes(*type) + " is not supported");
  }

private:
  void vocabulary(const JsonView &model) {
    if (auto type = model.optional("type").string(); type && *type != "BPE")
      model.complain("the type " + inQuotes(*type) + " is not supported; BPE is");
    if (auto dropout = model.optional("dropout").number(); dropout && *dropout != 0)
      model.complain("dropout is not supported");
    for (const char *field : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (auto text = model.optional(field).string(); text && !text->empty())
        model.complain(std::string(field) + " is not supported");
    if (model.optional("byte_fallback").boolean().value_or(false))
      model.complain("byte_fallback is not supported");
    content.ignoreMerges = model.optional("ignore_merges").boolean().value_or(false);

    auto members = model["vocab"].members();
    // Ids may have gaps, but not such that a small file asks for a huge table.
    mostTokens = static_cast<std::int64_t>(members.size()) + (1 << 16);
    for (auto &[text, value] : members) {
      auto id = value.integer(0, mostTokens - 1);
      if (!id)
        continue;
      Tokenizer::Content::Token &token = at(*id);
      if (!token.bytes.empty() || text.empty()) {
        value.complain(text.empty() ? "a token without text" : "the id is taken twice");
        continue;
      }
      if (!alphabet.decode(text, token.bytes)) {
        token.bytes = text; // never the result of byte-pair encoding
        continue;
      }
      content.idByBytes.emplace(token.bytes, static_cast<std::int32_t>(*id));
      if (token.bytes.size() == 1)
        content.pairs.setByteToken(static_cast<std::uint8_t>(token.bytes[0]),
                                   static_cast<std::int32_t>(*id));
    }
  }

  Tokenizer::Content::Token &at(std::int64_t id) {
    auto index = static_cast<std::size_t>(id);
    if (index >= content.tokens.size())
      content.tokens.resize(index + 1);
    return content.tokens[index];
  }

  std::int32_t idOf(std::string_view text) {
    std::string bytes;
    if (!alphabet.decode(text, bytes))
      return -1;
    auto found = content.idByBytes.find(bytes);
    return found == content.idByBytes.end() ? -1 : found->second;
  }

  // Each merge is "a b" or ["a", "b"]; its rank is its place in the list.
  void merges(const JsonView &model) {
    std::uint32_t rank = 0;
    for (const JsonView &merge : model["merges"].elements()) {
      std::string left, right;
      if (merge.raw()->is_string()) {
        std::string text = merge.raw()->get<std::string>();
        std::size_t space = text.find(' ');
        left = text.substr(0, space);
        right = space == std::string::npos ? "" : text.substr(space + 1);
      } else {
        std::vector<JsonView> sides = merge.elements();
        if (sides.size() == 2) {
          left = sides[0].string().value_or("");
          right = sides[1].string().value_or("");
        }
      }
      if (left.empty() || right.empty()) {
        merge.complain("a merge has two sides");
        continue;
      }
      std::int32_t leftId = idOf(left), rightId = idOf(right), merged = idOf(left + right);
      if (leftId < 0 || rightId < 0 || merged < 0)
        merge.complain("the vocabulary lacks " + inQuotes(leftId < 0    ? left
                                                          : rightId < 0 ? right
                                                                        : left + right));
      else if (!content.pairs.addMerge(leftId, rightId, rank, merged))
        merge.complain("the merge of " + inQuotes(left) + " and " + inQuotes(right) +
                       " occurs twice");
      ++rank;
    }
  }

  void addedToken(const JsonView &token) {
    auto id = token["id"].integer(0, mostTokens - 1);
    auto text = token["content"].string();
    for (const char *field : {"single_word", "lstrip", "rstrip"})
      if (token.optional(field).boolean().value_or(false))
        token.complain(std::string(field) + " is not supported");
    if (!id || !text)
      return;
    if (text->empty()) {
      token.complain("the token has no text");
      return;
    }
    Tokenizer::Content::Token &entry = at(*id);
    entry.bytes = *text;
    entry.special = token.optional("special").boolean().value_or(false);
    content.added.push_back({*text, static_cast<std::int32_t>(*id)});
  }

  void finishAdded() {
    for (std::uint32_t i = 0; i < content.added.size(); ++i)
      content.addedByFirstByte[static_cast<unsigned char>(content.added[i].text[0])].push_back(i);
    for (std::vector<std::uint32_t> &list : content.addedByFirstByte)
      std::stable_sort(list.begin(), list.end(), [&](std::uint32_t a, std::uint32_t b) {
        return content.added[a].text.size() > content.added[b].text.size();
      });
  }

  void addSplitter(const JsonView &place, const std::string &pattern, bool literal) {
    Result<Splitter> splitter = Splitter::create(pattern, literal);
    if (splitter.isOk())
      content.splitters.push_back(*std::move(splitter));
    else
      place.complain(splitter.status().message());
  }

  void preTokenizer(const JsonView &step, bool &byteLevel, unsigned depth) {
    std::string type = step["type"].string().value_or("");
    if (byteLevel)
      step.complain("a step after ByteLevel is not supported");
    if (type == "Sequence" && depth < 8) {
      for (const JsonView &each : step["pretokenizers"].elements())
        preTokenizer(each, byteLevel, depth + 1);
    } else if (type == "Split") {
      if (auto behavior = step["behavior"].string(); behavior && *behavior != "Isolated")
        step.complain("the behavior " + inQuotes(*behavior) + " is not supported; Isolated is");
      if (step.optional("invert").boolean().value_or(false))
        step.complain("invert is not supported");
      JsonView pattern = step["pattern"];
      JsonView regex = pattern.optional("Regex");
      if (auto text = (regex ? regex : pattern["String"]).string())
        addSplitter(pattern, *text, !regex);
    } else if (type == "Digits") {
      bool single = step.optional("individual_digits").boolean().value_or(false);
      addSplitter(step, single ? "\\p{N}" : "\\p{N}+", false);
    } else if (type == "ByteLevel") {
      byteLevel = true;
      content.prefixSpace = step.optional("add_prefix_space").boolean().value_or(true);
      if (step.optional("use_regex").boolean().value_or(true)) {
        addSplitter(step, byteLevelPattern, false);
        // The space goes in front of the whole text then, before it is split.
        if (content.prefixSpace)
          step.complain("add_prefix_space together with use_regex is not supported");
      }
    } else if (!type.empty()) {
      step.complain("the pre-tokenizer " + inQuotes(type) + " is not supported");
    }
  }

  // Begin-of-text is the caller's business, so a template changes nothing here.
  void postProcessor(const JsonView &processor, unsigned depth) {
    if (!processor)
      return;
    std::string type = processor["type"].string().value_or("");
    if (type == "Sequence" && depth < 8) {
      for (const JsonView &each : processor["processors"].elements())
        postProcessor(each, depth + 1);
    } else if (!type.empty() && type != "ByteLevel" && type != "TemplateProcessing") {
      processor.complain("the post-processor " + inQuotes(type) + " is not supported");
    }
  }

  Tokenizer::Content &content;
  Problems &problems;
  ByteAlphabet alphabet;
  std::int64_t mostTokens = 0;
};

} // namespace

Result<Tokenizer> Tokenizer::parse(std::string_view text, std::string_view place) {
  MOERT_ASSIGN_OR_RETURN(Json document, parseJson(text, place));
  Problems problems{std::string(place)};
  auto content = std::make_unique<Content>();
  Reader(*content, problems).read(JsonView(document, problems));
  MOERT_RETURN_IF_ERROR(problems.toStatus(ErrorCode::Unsupported));
  return Tokenizer(std::move(content));
}

} // namespace moert
