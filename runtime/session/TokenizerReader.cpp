// tokenizer.json to a Tokenizer.
#include "runtime/base/Json.h"
#include "runtime/session/ByteAlphabet.h"
#include "runtime/session/TokenizerContent.h"
#include "runtime/session/TokenizerSteps.h"

namespace moert {

namespace {

class Reader {
public:
  Reader(Tokenizer::Content &content, Problems &problems) : content(content), problems(problems) {}

  void read(const JsonView &document) {
    for (const char *field : {"truncation", "padding"})
      if (JsonView value = document.optional(field))
        value.complain("is not supported; write null");
    content.normalizers = readNormalizers(document.optional("normalizer"));
    PreTokenizers cutting = readPreTokenizers(document.optional("pre_tokenizer"));
    content.preTokenizers = std::move(cutting.steps);
    content.isByteLevel = cutting.isByteLevel;
    (void)readTemplateBeginning(document.optional("post_processor"));
    readDecoding(document);
    JsonView model = document["model"];
    vocabulary(model);
    for (const JsonView &token : document.optional("added_tokens").elements())
      addedToken(token);
    for (AddedTokens *added : {&content.addedToText, &content.addedToNormalized})
      if (Status status = added->finish(); !status.isOk())
        problems.add("added_tokens: " + status.message());
  }

private:
  void readDecoding(const JsonView &document) {
    JsonView decoder = document.optional("decoder");
    decoding = readDecoder(decoder);
    content.strippedSpaces = decoding.strippedSpaces;
    if (!decoder && !content.isByteLevel)
      problems.add("decoder: is missing, and pre_tokenizer has no ByteLevel step, which would say "
                   "how tokens are put together");
    else if (decoder && decoding.isByteLevel != content.isByteLevel)
      decoder.complain("decoder and pre_tokenizer disagree: ByteLevel belongs in both or in none");
  }

  void vocabulary(const JsonView &model) {
    std::string type = model.optional("type").string().value_or("BPE");
    bool isRanked = type == "RankedBPE";
    if (type != "BPE" && !isRanked)
      model.complain("the type " + inQuotes(type) + " is not supported; BPE is");
    if (auto dropout = model.optional("dropout").number(); dropout && *dropout != 0)
      model.complain("dropout is not supported");
    for (const char *field : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (auto text = model.optional(field).string(); text && !text->empty())
        model.complain(std::string(field) + " is not supported");
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
      if (content.isByteLevel && !alphabet.decode(text, token.bytes)) {
        token.bytes = text; // never the result of byte-pair encoding
        continue;
      }
      ids.emplace(text, id);
      if (content.isByteLevel) {
        content.ids.emplace(token.bytes, id);
        if (token.bytes.size() == 1)
          content.byteTokens[static_cast<unsigned char>(token.bytes[0])] = id;
      } else {
        content.ids.emplace(text, id);
        token.bytes = decoding.bytes(text);
      }
    }
    if (isRanked)
      rankedMerges();
    else
      merges(model);
    if (!content.isByteLevel)
      unknownCharacters(model);
  }

  // What a character becomes that is no token.
  void unknownCharacters(const JsonView &model) {
    content.hasByteFallback = model.optional("byte_fallback").boolean().value_or(false);
    content.fusesUnknown = model.optional("fuse_unk").boolean().value_or(false);
    for (unsigned byte = 0; byte < 256; ++byte) {
      constexpr const char *digits = "0123456789ABCDEF";
      std::string text = {'<', '0', 'x', digits[byte / 16], digits[byte % 16], '>'};
      content.byteTokens[byte] = idOf(text);
    }
    JsonView unknown = model.optional("unk_token");
    if (auto text = unknown.string()) {
      content.unknown = idOf(*text);
      if (content.unknown < 0)
        unknown.complain("the vocabulary lacks " + inQuotes(*text));
    }
  }

  // The order of the vocabulary is the order of merging: any two neighbours whose text is a token
  // become it, the lowest id first.
  void rankedMerges() {
    for (const auto &[text, id] : content.ids) {
      if (text.size() > longestRanked) {
        problems.add("model.vocab: a token of " + std::to_string(text.size()) + " bytes; " +
                     std::to_string(longestRanked) + " are supported");
        return;
      }
      std::string_view all = text;
      for (std::size_t cut = 1; cut < all.size(); ++cut) {
        auto left = content.ids.find(all.substr(0, cut));
        if (left == content.ids.end())
          continue;
        if (auto right = content.ids.find(all.substr(cut)); right != content.ids.end())
          (void)content.pairs.addMerge(left->second, right->second, static_cast<std::uint32_t>(id),
                                       id);
      }
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
    auto flag = [&](const char *name) { return token.optional(name).boolean().value_or(false); };
    if (!id || !text)
      return;
    if (text->empty()) {
      token.complain("the token has no text");
      return;
    }
    if (std::int32_t known = idOf(*text); known >= 0 && known != *id) {
      token.complain("the vocabulary has " + inQuotes(*text) + " as " + std::to_string(known));
      return;
    }
    bool isSpecial = flag("special");
    AddedToken added{*text, static_cast<std::int32_t>(*id), flag("single_word"), flag("lstrip"),
                     flag("rstrip")};
    bool isNormalized = flag("normalized");
    // It is looked for in normalized text, so it has to look like it.
    for (const Normalizer &normalizer : content.normalizers)
      if (Status status = isNormalized ? normalizer.apply(added.text) : Status(); !status.isOk())
        token.complain(status.message());
    if (added.text.empty()) {
      token.complain("nothing is left of the token after normalizing");
      return;
    }
    at(*id) = {content.isByteLevel ? added.text : decoding.bytes(added.text), isSpecial};
    (isNormalized ? content.addedToNormalized : content.addedToText).add(std::move(added));
  }

  static constexpr std::size_t longestRanked = 1024;

  Tokenizer::Content &content;
  Problems &problems;
  Decoding decoding;
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
