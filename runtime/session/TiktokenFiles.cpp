#include "runtime/session/TiktokenFiles.h"

#include "runtime/session/ByteAlphabet.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace moert {

namespace {

// A file of ranks does not say how text is cut: that stands in the Python code beside it. These
// patterns are tiktoken's, so in the syntax of Rust.
struct Family {
  std::string_view modelTypes; // how their names begin
  std::string_view tokenizerClass;
  std::string_view pattern;
  unsigned specialTokens; // ids reserved for them behind the ranks
};
constexpr Family families[] = {
    {"kimi", "TikTokenTokenizer",
     R"([\p{Han}]+)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
     R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
     R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     256}};

const Family *findFamily(const std::string &modelType, const std::string &tokenizerClass) {
  for (const Family &family : families)
    if (modelType.starts_with(family.modelTypes) || tokenizerClass == family.tokenizerClass)
      return &family;
  return nullptr;
}

// None if `text` is no base64 with its padding.
std::optional<std::string> decodeBase64(std::string_view text) {
  static constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.empty() || text.size() % 4 != 0)
    return std::nullopt;
  std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  text.remove_suffix(padding);
  std::string result;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t digit = digits.find(text[i]);
    if (digit == std::string_view::npos)
      return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if (i % 4 != 0)
      result += static_cast<char>(bits >> (6 - i % 4 * 2) & 0xff);
  }
  std::uint32_t unused = padding == 0 ? 0 : padding == 1 ? 3 : 15;
  if (bits & unused)
    return std::nullopt;
  return result;
}

// Lines "BASE64 RANK": tokens by rank.
std::vector<std::string> readRanks(std::string_view text, Problems &problems) {
  std::vector<std::pair<std::uint32_t, std::string>> lines;
  std::size_t line = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view content = text.substr(at, end - at);
    at = end + 1;
    ++line;
    if (content.ends_with('\r'))
      content.remove_suffix(1);
    if (content.empty())
      continue;
    std::size_t space = content.find(' ');
    auto token = decodeBase64(content.substr(0, space));
    std::string_view number = space == std::string_view::npos ? "" : content.substr(space + 1);
    std::uint32_t rank = 0;
    auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), rank);
    if (!token || error != std::errc() || stop != number.data() + number.size())
      problems.add("line " + std::to_string(line) + ": expected 'BASE64 RANK', found " +
                   inQuotes(content));
    else
      lines.emplace_back(rank, *std::move(token));
  }
  if (!problems.empty())
    return {};
  std::vector<std::string> tokens(lines.size());
  for (auto &[rank, token] : lines) {
    if (rank >= tokens.size())
      problems.add("the rank " + std::to_string(rank) + " among " + std::to_string(tokens.size()) +
                   " tokens: ranks count from 0 without gaps");
    else if (!tokens[rank].empty())
      problems.add("the rank " + std::to_string(rank) + " occurs twice");
    else
      tokens[rank] = std::move(token);
  }
  return tokens;
}

// The vocabulary of a tokenizer.json.
Json vocabularyOf(const std::vector<std::string> &tokens, Problems &problems) {
  ByteAlphabet alphabet;
  Json vocabulary = Json::object();
  std::array<bool, 256> found = {};
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
    if (tokens[rank].size() == 1)
      found[static_cast<unsigned char>(tokens[rank][0])] = true;
    if (!vocabulary.emplace(alphabet.encode(tokens[rank]), rank).second)
      problems.add("the token of rank " + std::to_string(rank) + " has another rank, too");
  }
  std::size_t missing = static_cast<std::size_t>(std::count(found.begin(), found.end(), false));
  if (missing > 0)
    problems.add(std::to_string(missing) + " of the 256 bytes are no tokens of their own");
  return vocabulary;
}

// The ids behind the ranks; those without a name in tokenizer_config.json are reserved.
Json addedTokens(std::size_t ranks, unsigned count, const JsonView &names) {
  Json result = Json::array();
  for (std::size_t id = ranks; id < ranks + count; ++id) {
    Json token = {{"id", id},
                  {"content", "<|reserved_token_" + std::to_string(id) + "|>"},
                  {"special", true},
                  {"normalized", false}};
    if (JsonView entry = names.optional(std::to_string(id))) {
      if (auto content = entry["content"].string())
        token["content"] = *content;
      token["special"] = entry.optional("special").boolean().value_or(false);
    }
    result.push_back(std::move(token));
  }
  return result;
}

} // namespace

Result<std::string> tiktokenToJson(std::string_view ranks, const Json &config,
                                   const Json &tokenizerConfig) {
  Problems configProblems("config.json"), tokenizerProblems("tokenizer_config.json"),
      rankProblems("tiktoken.model");
  const Json none = Json::object();
  JsonView tokenizer(tokenizerConfig.is_null() ? none : tokenizerConfig, tokenizerProblems);
  std::string modelType = JsonView(config.is_null() ? none : config, configProblems)
                              .optional("model_type")
                              .string()
                              .value_or("");
  std::string tokenizerClass = tokenizer.optional("tokenizer_class").string().value_or("");
  const Family *family = findFamily(modelType, tokenizerClass);
  if (!family)
    return Status(ErrorCode::Unsupported,
                  "how text is cut for these ranks is not known for the model type " +
                      inQuotes(modelType) + " and the tokenizer class " + inQuotes(tokenizerClass),
                  "tiktoken.model",
                  "known are model types that begin with 'kimi' and the class TikTokenTokenizer; "
                  "for others put a tokenizer.json beside it");
  std::vector<std::string> tokens = readRanks(ranks, rankProblems);
  if (!rankProblems.empty())
    return rankProblems.toStatus(ErrorCode::InvalidData);
  Json vocabulary = vocabularyOf(tokens, rankProblems);
  Json added =
      addedTokens(tokens.size(), family->specialTokens, tokenizer.optional("added_tokens_decoder"));
  for (const Problems *problems : {&configProblems, &tokenizerProblems, &rankProblems})
    MOERT_RETURN_IF_ERROR(problems->toStatus(ErrorCode::InvalidData));
  Json split = {{"type", "Split"},
                {"pattern", {{"RustRegex", family->pattern}}},
                {"behavior", "Isolated"},
                {"invert", false}};
  Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  Json document = {
      {"added_tokens", std::move(added)},
      {"pre_tokenizer",
       {{"type", "Sequence"},
        {"pretokenizers", Json::array({std::move(split), std::move(bytes)})}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "RankedBPE"}, {"ignore_merges", true}, {"vocab", std::move(vocabulary)}}}};
  return document.dump();
}

static Result<Json> readOptional(const Folder &folder, std::string_view name) {
  if (!folder.contains(name))
    return Json::object();
  MOERT_ASSIGN_OR_RETURN(File file, folder.openFile(name));
  return readJson(file);
}

Result<std::string> readTokenizerFiles(const std::string &path) {
  constexpr std::uint64_t largestFile = std::uint64_t(1) << 28;
  MOERT_ASSIGN_OR_RETURN(Folder folder, Folder::open(path, Links::Allow));
  bool isTiktoken = !folder.contains("tokenizer.json");
  if (isTiktoken && !folder.contains("tiktoken.model"))
    return Status(ErrorCode::NotFound, "there is neither tokenizer.json nor tiktoken.model", path);
  MOERT_ASSIGN_OR_RETURN(File file,
                         folder.openFile(isTiktoken ? "tiktoken.model" : "tokenizer.json"));
  MOERT_ASSIGN_OR_RETURN(std::string text, file.readAll(largestFile));
  if (!isTiktoken)
    return text;
  MOERT_ASSIGN_OR_RETURN(Json config, readOptional(folder, "config.json"));
  MOERT_ASSIGN_OR_RETURN(Json tokenizerConfig, readOptional(folder, "tokenizer_config.json"));
  auto json = tiktokenToJson(text, config, tokenizerConfig);
  if (!json.isOk())
    return std::move(json).status().in(path);
  return json;
}

} // namespace moert
