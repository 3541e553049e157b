// tokenizer.json to a Tokenizer.
#include "runtime/base/Json.h"
#include "runtime/session/TokenizerContent.h"
#include "runtime/session/Utf8.h"

#include <algorithm>
#include <array>

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
    bytes.fill(-1);
    std::size_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      bool printable =
          (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
      bytes[printable ? byte : next++] = static_cast<std::int16_t>(byte);
    }
  }
  // Whether `token` (valid UTF-8) is written in the alphabet; if so, the bytes it stands for.
  bool decode(std::string_view token, std::string &result) const {
    result.clear();
    for (std::size_t i = 0; i < token.size(); ++i) {
      auto lead = static_cast<unsigned char>(token[i]);
      unsigned code = lead;
      if (lead >= 0xe0)
        return false;
      if (lead >= 0xc0)
        code = (lead & 0x1fu) << 6 | (static_cast<unsigned char>(token[++i]) & 0x3fu);
      if (code >= bytes.size() || bytes[code] < 0)
        return false;
      result += static_cast<char>(bytes[code]);
    }
    return true;
  }

private:
  std::array<std::int16_t, 0x180> bytes; // by code point; -1: not in the alphabet
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

    JsonView vocab = model["vocab"];
    if (!vocab || !vocab.raw()->is_object()) {
      (void)vocab.members(); // complains
      return;
    }
    // Real vocabularies have 200,000 entries: views, with their paths, are made only to complain.
    const auto &members = vocab.raw()->get_ref<const Json::object_t &>();
    // Ids may have gaps, but not such that a small file asks for a huge table.
    mostTokens = static_cast<std::int64_t>(members.size()) + (1 << 16);
    ids.reserve(members.size());
    for (const auto &[text, value] : members) {
      if (!value.is_number_unsigned() ||
          value.get<std::uint64_t>() >= static_cast<std::uint64_t>(mostTokens)) {
        (void)vocab[text].integer(0, mostTokens - 1); // complains
        continue;
      }
      auto id = static_cast<std::int32_t>(value.get<std::uint64_t>());
      Tokenizer::Content::Token &token = at(id);
      if (!token.bytes.empty() || text.empty()) {
        vocab[text].complain(text.empty() ? "a token without text" : "the id is taken twice");
        continue;
      }
      if (!alphabet.decode(text, token.bytes)) {
        token.bytes = text; // never the result of byte-pair encoding
        continue;
      }
      ids.emplace(text, id);
      content.idByBytes.emplace(token.bytes, id);
      if (token.bytes.size() == 1)
        content.pairs.setByteToken(static_cast<std::uint8_t>(token.bytes[0]), id);
    }
  }

  Tokenizer::Content::Token &at(std::int64_t id) {
    auto index = static_cast<std::size_t>(id);
    if (index >= content.tokens.size())
      content.tokens.resize(index + 1);
    return content.tokens[index];
  }

  // -1: no such token that byte-pair encoding can reach.
  std::int32_t idOf(std::string_view text) const {
    auto found = ids.find(text);
    return found == ids.end() ? -1 : found->second;
  }

  // Each merge is "a b" or ["a", "b"]; its rank is its place in the list.
  void merges(const JsonView &model) {
    JsonView list = model["merges"];
    if (!list || !list.raw()->is_array()) {
      (void)list.elements(); // complains
      return;
    }
    std::string joined;
    for (std::size_t rank = 0; rank < list.raw()->size(); ++rank) {
      const Json &merge = (*list.raw())[rank];
      auto complain = [&](const std::string &message) {
        problems.add(list.path() + "[" + std::to_string(rank) + "]: " + message);
      };
      std::string_view left, right;
      if (merge.is_string()) {
        std::string_view text = merge.get_ref<const std::string &>();
        std::size_t space = text.find(' ');
        left = text.substr(0, space);
        right = space == std::string_view::npos ? "" : text.substr(space + 1);
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                 merge[1].is_string()) {
        left = merge[0].get_ref<const std::string &>();
        right = merge[1].get_ref<const std::string &>();
      }
      if (left.empty() || right.empty()) {
        complain("a merge has two sides, as \"a b\" or [\"a\", \"b\"]");
        continue;
      }
      joined.assign(left).append(right);
      std::int32_t leftId = idOf(left), rightId = idOf(right), merged = idOf(joined);
      if (leftId < 0 || rightId < 0 || merged < 0)
        complain("the vocabulary lacks " + inQuotes(leftId < 0    ? left
                                                    : rightId < 0 ? right
                                                                  : std::string_view(joined)));
      else if (!content.pairs.addMerge(leftId, rightId, static_cast<std::uint32_t>(rank), merged))
        complain("the merge of " + inQuotes(left) + " and " + inQuotes(right) + " occurs twice");
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
  std::unordered_map<std::string_view, std::int32_t> ids; // by text as in the file
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
