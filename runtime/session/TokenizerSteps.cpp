#include "runtime/session/TokenizerSteps.h"

#include <charconv>

namespace moert {

namespace {

// Hostile files nest sequences.
constexpr unsigned deepest = 8;
// Of what is put in front of every piece, in bytes: real ones have one character.
constexpr std::size_t longestMark = 64;

std::string typeOf(const JsonView &step) { return step["type"].string().value_or(""); }

void complainUnsupported(const JsonView &step, const char *what, const std::string &type,
                         const char *supported) {
  if (!type.empty()) // its absence was said already
    step.complain(std::string("the ") + what + " " + inQuotes(type) + " is not supported; " +
                  supported + " are");
}

// {"Regex": "..."} or {"String": "..."}, or {"RustRegex": "..."} in what TiktokenFiles.cpp makes.
std::optional<Splitter> readPattern(const JsonView &pattern,
                                    SplitBehavior behavior = SplitBehavior::Isolated,
                                    bool invert = false) {
  JsonView ruby = pattern.optional("Regex"), rust = pattern.optional("RustRegex");
  auto text = (ruby ? ruby : rust ? rust : pattern["String"]).string();
  if (!text)
    return std::nullopt;
  std::optional<PatternSyntax> syntax;
  if (ruby || rust)
    syntax = ruby ? PatternSyntax::Oniguruma : PatternSyntax::Rust;
  auto splitter = Splitter::create(*text, syntax, behavior, invert);
  if (splitter.isOk())
    return *std::move(splitter);
  pattern.complain(splitter.status().message());
  return std::nullopt;
}

SplitBehavior readBehavior(const JsonView &behavior) {
  static constexpr std::pair<const char *, SplitBehavior> names[] = {
      {"Isolated", SplitBehavior::Isolated},
      {"Removed", SplitBehavior::Removed},
      {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
      {"MergedWithNext", SplitBehavior::MergedWithNext},
      {"Contiguous", SplitBehavior::Contiguous}};
  std::string found = behavior.string().value_or("Isolated");
  for (const auto &[name, value] : names)
    if (found == name)
      return value;
  behavior.complain("the behavior " + inQuotes(found) +
                    " is not supported; Isolated, Removed, MergedWithPrevious, MergedWithNext and "
                    "Contiguous are");
  return SplitBehavior::Isolated;
}

void readNormalizer(const JsonView &step, std::vector<Normalizer> &result, unsigned depth) {
  std::string type = typeOf(step);
  static constexpr std::pair<const char *, Normalizer::Kind> forms[] = {
      {"NFC", Normalizer::Nfc},
      {"NFD", Normalizer::Nfd},
      {"NFKC", Normalizer::Nfkc},
      {"NFKD", Normalizer::Nfkd},
      {"Lowercase", Normalizer::Lowercase}};
  for (const auto &[name, kind] : forms)
    if (type == name) {
      result.push_back({kind, "", {}});
      return;
    }
  if (type == "Sequence" && depth < deepest) {
    for (const JsonView &each : step["normalizers"].elements())
      readNormalizer(each, result, depth + 1);
  } else if (type == "Prepend") {
    auto text = step["prepend"].string();
    if (text && text->size() > longestMark)
      step.complain("the text has " + std::to_string(text->size()) + " bytes; " +
                    std::to_string(longestMark) + " are supported");
    else if (text)
      result.push_back({Normalizer::Prepend, *text, {}});
  } else if (type == "Replace") {
    auto pattern = readPattern(step["pattern"]);
    auto text = step["content"].string();
    if (pattern && text)
      result.push_back({Normalizer::Replace, *text, std::move(pattern)});
  } else if (type == "Strip") {
    if (step.optional("strip_left").boolean().value_or(false))
      result.push_back({Normalizer::StripLeft, "", {}});
    if (step.optional("strip_right").boolean().value_or(false))
      result.push_back({Normalizer::StripRight, "", {}});
  } else {
    complainUnsupported(step, "normalizer", type,
                        "NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace, Strip and Sequence");
  }
}

// Metaspace's fields, which its decoder has, too.
PreTokenizer readMetaspace(const JsonView &step) {
  PreTokenizer result{PreTokenizer::Metaspace, {}, "", PreTokenizer::Always};
  result.mark = step.optional("replacement").string().value_or("\u2581");
  if (result.mark.empty() || result.mark.size() > longestMark)
    step.complain("the replacement has " + std::to_string(result.mark.size()) + " bytes; 1 to " +
                  std::to_string(longestMark) + " are supported");
  JsonView scheme = step.optional("prepend_scheme");
  std::string name = scheme.string().value_or("always");
  if (name == "first")
    result.scheme = PreTokenizer::First;
  else if (name == "never")
    result.scheme = PreTokenizer::Never;
  else if (name != "always")
    scheme.complain("the scheme " + inQuotes(name) +
                    " is not supported; always, first and never are");
  // How it was written before there were schemes.
  if (!scheme && !step.optional("add_prefix_space").boolean().value_or(true))
    result.scheme = PreTokenizer::Never;
  return result;
}

class PreTokenizerReader {
public:
  PreTokenizers result;

  void read(const JsonView &step, unsigned depth) {
    std::string type = typeOf(step);
    if (result.isByteLevel)
      step.complain("a step after ByteLevel is not supported");
    if (type == "Sequence" && depth < deepest) {
      for (const JsonView &each : step["pretokenizers"].elements())
        read(each, depth + 1);
    } else if (type == "Split") {
      SplitBehavior behavior = readBehavior(step["behavior"]);
      bool invert = step.optional("invert").boolean().value_or(false);
      if (auto splitter = readPattern(step["pattern"], behavior, invert))
        result.steps.push_back({PreTokenizer::Split, std::move(splitter), "", {}});
    } else if (type == "Digits") {
      bool single = step.optional("individual_digits").boolean().value_or(false);
      add(step, single ? "\\p{N}" : "\\p{N}+", SplitBehavior::Isolated);
    } else if (type == "Whitespace") {
      add(step, "\\w+|[^\\w\\s]+", SplitBehavior::Removed, /*invert=*/true);
    } else if (type == "WhitespaceSplit") {
      add(step, "\\s", SplitBehavior::Removed);
    } else if (type == "Punctuation") {
      add(step, "[\\p{P}$+<=>^`|~]", readBehavior(step.optional("behavior")));
    } else if (type == "Metaspace") {
      metaspace(step);
    } else if (type == "ByteLevel") {
      byteLevel(step);
    } else {
      complainUnsupported(step, "pre-tokenizer", type,
                          "Split, ByteLevel, Metaspace, Digits, Punctuation, Whitespace, "
                          "WhitespaceSplit and Sequence");
    }
  }

private:
  void add(const JsonView &step, std::string_view pattern, SplitBehavior behavior,
           bool invert = false) {
    auto splitter = Splitter::create(pattern, PatternSyntax::Rust, behavior, invert);
    if (splitter.isOk())
      result.steps.push_back({PreTokenizer::Split, *std::move(splitter), "", {}});
    else
      step.complain(splitter.status().message());
  }

  void metaspace(const JsonView &step) {
    PreTokenizer read = readMetaspace(step);
    if (step.optional("split").boolean().value_or(true) && !read.mark.empty()) {
      auto splitter = Splitter::create(read.mark, std::nullopt, SplitBehavior::MergedWithNext);
      if (splitter.isOk())
        read.splitter = *std::move(splitter);
      else
        step.complain(splitter.status().message());
    }
    result.steps.push_back(std::move(read));
  }

  void byteLevel(const JsonView &step) {
    result.isByteLevel = true;
    if (step.optional("add_prefix_space").boolean().value_or(true))
      result.steps.push_back({PreTokenizer::PrefixSpace, {}, "", {}});
    // GPT-2's own pattern.
    if (step.optional("use_regex").boolean().value_or(true))
      add(step, R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
          SplitBehavior::Isolated);
  }
};

class DecoderReader {
public:
  Decoding result;

  void read(const JsonView &step, unsigned depth) {
    std::string type = typeOf(step);
    if (type == "Sequence" && depth < deepest) {
      for (const JsonView &each : step["decoders"].elements())
        read(each, depth + 1);
    } else if (type == "ByteLevel") {
      result.isByteLevel = true;
    } else if (type == "ByteFallback") {
      result.hasByteFallback = true;
    } else if (type == "Fuse") {
      isFused = true;
    } else if (type == "Replace") {
      replace(step);
    } else if (type == "Strip") {
      strip(step);
    } else if (type == "Metaspace") {
      PreTokenizer read = readMetaspace(step);
      result.replacements.emplace_back(read.mark, " ");
      result.strippedSpaces = read.scheme != PreTokenizer::Never;
    } else {
      complainUnsupported(step, "decoder", type,
                          "ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace and Sequence");
    }
  }

private:
  // Decoding goes token by token, so that text can be shown as it arrives.
  void replace(const JsonView &step) {
    auto from = step["pattern"]["String"].string();
    auto to = step["content"].string();
    if (isFused || result.hasByteFallback)
      step.complain("Replace after ByteFallback or Fuse is not supported");
    if (!from || !to)
      return;
    // So that no file of a few bytes makes gigabytes.
    if (from->empty() || to->size() > from->size())
      step.complain("content is longer than the pattern, which is not supported");
    else
      result.replacements.emplace_back(*from, *to);
  }

  void strip(const JsonView &step) {
    auto content = step["content"].string();
    auto start = step["start"].integer(0, 1 << 16), stop = step["stop"].integer();
    if (!content || !start || !stop)
      return;
    if (*content != " " || *stop != 0 || !isFused)
      step.complain("Strip is supported after Fuse, for the content ' ' with stop 0");
    result.strippedSpaces += static_cast<std::size_t>(*start);
  }

  bool isFused = false;
};

void readTemplate(const JsonView &processor, std::vector<std::int64_t> &ids, unsigned depth) {
  std::string type = typeOf(processor);
  if (type == "Sequence" && depth < deepest) {
    for (const JsonView &each : processor["processors"].elements())
      readTemplate(each, ids, depth + 1);
  } else if (type == "TemplateProcessing") {
    for (const JsonView &part : processor["single"].elements()) {
      JsonView token = part.optional("SpecialToken");
      if (!token)
        break; // the text itself
      auto name = token["id"].string();
      if (!name)
        continue;
      for (const JsonView &id : processor["special_tokens"][*name]["ids"].elements())
        if (auto value = id.integer(0, INT32_MAX))
          ids.push_back(*value);
    }
  } else if (type != "ByteLevel") { // which changes nothing but offsets
    complainUnsupported(processor, "post-processor", type,
                        "TemplateProcessing, ByteLevel and Sequence");
  }
}

} // namespace

std::vector<Normalizer> readNormalizers(const JsonView &normalizer) {
  std::vector<Normalizer> result;
  if (normalizer)
    readNormalizer(normalizer, result, 0);
  return result;
}

PreTokenizers readPreTokenizers(const JsonView &preTokenizer) {
  PreTokenizerReader reader;
  if (preTokenizer)
    reader.read(preTokenizer, 0);
  return std::move(reader.result);
}

Decoding readDecoder(const JsonView &decoder) {
  DecoderReader reader;
  if (decoder)
    reader.read(decoder, 0);
  return std::move(reader.result);
}

std::vector<std::int64_t> readTemplateBeginning(const JsonView &postProcessor) {
  std::vector<std::int64_t> ids;
  if (postProcessor)
    readTemplate(postProcessor, ids, 0);
  return ids;
}

std::string Decoding::bytes(std::string_view token) const {
  std::string text(token);
  for (const auto &[from, to] : replacements)
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  if (!hasByteFallback || text.size() != 6 || !text.starts_with("<0x") || text[5] != '>')
    return text;
  unsigned byte = 0;
  auto [stop, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  if (error != std::errc() || stop != text.data() + 5)
    return text;
  return std::string(1, static_cast<char>(byte));
}

} // namespace moert
