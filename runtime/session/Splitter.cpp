#include "runtime/session/Splitter.h"

#include "runtime/session/Utf8.h"

#include <algorithm>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace moert {

struct Splitter::Code {
  pcre2_code *pattern = nullptr;
  ~Code() { pcre2_code_free(pattern); }
};

Splitter::Splitter(std::unique_ptr<Code> code, SplitBehavior behavior, bool invert)
    : code(std::move(code)), behavior(behavior), invert(invert) {}
Splitter::Splitter(Splitter &&) noexcept = default;
Splitter &Splitter::operator=(Splitter &&) noexcept = default;
Splitter::~Splitter() = default;

namespace {

std::string errorText(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char *>(text);
}

// What one call of split needs; the compiled pattern itself is shared.
struct Matcher {
  pcre2_match_data *data = nullptr;
  pcre2_match_context *limits = nullptr;
  pcre2_jit_stack *stack = nullptr;
  ~Matcher() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(limits);
    pcre2_jit_stack_free(stack);
  }
};

} // namespace

Result<Splitter> Splitter::create(std::string_view pattern, std::optional<PatternSyntax> syntax,
                                  SplitBehavior behavior, bool invert) {
  constexpr std::size_t longestPattern = 1 << 16;
  if (pattern.size() > longestPattern)
    return Status(ErrorCode::Unsupported,
                  "the pattern has " + std::to_string(pattern.size()) + " bytes");
  std::string text(pattern);
  if (syntax) {
    MOERT_ASSIGN_OR_RETURN(text, toPcre2(pattern, *syntax));
  }
  int error;
  PCRE2_SIZE offset;
  std::uint32_t options =
      PCRE2_UTF | (syntax ? PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C : PCRE2_LITERAL);
  pcre2_compile_context *context = pcre2_compile_context_create(nullptr);
  if (!context)
    return Status(ErrorCode::OutOfMemory, "no memory for a regular expression");
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  auto code = std::make_unique<Code>();
  code->pattern = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), options,
                                &error, &offset, context);
  pcre2_compile_context_free(context);
  if (!code->pattern)
    return Status(ErrorCode::Unsupported,
                  "the pattern " + inQuotes(pattern) + " is not understood: " + errorText(error));
  pcre2_jit_compile(code->pattern, PCRE2_JIT_COMPLETE); // without it matching is only slower
  return Splitter(std::move(code), behavior, invert);
}

Status Splitter::parts(std::string_view text, std::vector<Part> &found) const {
  Matcher matcher;
  matcher.data = pcre2_match_data_create_from_pattern(code->pattern, nullptr);
  matcher.limits = pcre2_match_context_create(nullptr);
  if (!matcher.data || !matcher.limits)
    return {ErrorCode::OutOfMemory, "no memory for a regular expression"};
  // A tokenizer's own patterns need a few steps a character.
  pcre2_set_match_limit(matcher.limits, 5'000'000);
  pcre2_set_heap_limit(matcher.limits, 256 << 10); // KiB
  // Compiled patterns remember where they came from on a stack that grows: a word of a million
  // letters needs more than the default of 32 KiB. Without it they are matched without compilation.
  if (text.size() > 1024) {
    matcher.stack = pcre2_jit_stack_create(32 << 10, 256 << 20, nullptr);
    if (matcher.stack)
      pcre2_jit_stack_assign(matcher.limits, nullptr, matcher.stack);
  }
  auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::size_t at = 0, cut = 0;
  while (at <= text.size()) {
    int result = pcre2_match(code->pattern, subject, text.size(), at, PCRE2_NO_UTF_CHECK,
                             matcher.data, matcher.limits);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
      result = pcre2_match(code->pattern, subject, text.size(), at,
                           PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, matcher.data, matcher.limits);
    if (result == PCRE2_ERROR_NOMATCH)
      break;
    if (result < 0)
      return {ErrorCode::Unsupported,
              "the tokenizer's pattern fails on this text: " + errorText(result)};
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(matcher.data);
    std::size_t begin = range[0], end = range[1];
    // A look-around can turn a match around; nothing sensible follows from it.
    if (begin < cut || end < begin)
      return {ErrorCode::Unsupported, "the tokenizer's pattern matches backwards"};
    // An empty match right behind a match is none.
    bool isNone = begin == end && begin == cut && cut > 0;
    if (!isNone) {
      if (begin > cut)
        found.push_back({cut, begin, false});
      found.push_back({begin, end, true});
      cut = end;
    }
    at = end;
    if (end == begin) {
      if (end == text.size())
        break;
      at += nextUtf8(text.substr(end)).bytes;
    }
  }
  if (cut < text.size())
    found.push_back({cut, text.size(), false});
  return {};
}

Status Splitter::split(std::string_view text, std::vector<std::string_view> &pieces) const {
  if (text.empty())
    return {};
  std::vector<Part> found;
  MOERT_RETURN_IF_ERROR(parts(text, found));
  std::vector<Part> merged;
  bool wasMatch = false; // the part before
  for (std::size_t i = 0; i < found.size(); ++i) {
    bool fromEnd = behavior == SplitBehavior::MergedWithNext;
    Part part = found[fromEnd ? found.size() - 1 - i : i];
    part.isMatch = part.isMatch != invert;
    bool joins = false; // the part before
    switch (behavior) {
    case SplitBehavior::Isolated:
      break;
    case SplitBehavior::Removed:
      if (part.isMatch)
        continue;
      break;
    case SplitBehavior::MergedWithPrevious:
    case SplitBehavior::MergedWithNext:
      joins = part.isMatch && !wasMatch;
      break;
    case SplitBehavior::Contiguous:
      joins = part.isMatch == wasMatch;
      break;
    }
    wasMatch = part.isMatch;
    if (joins && !merged.empty()) {
      merged.back().begin = std::min(merged.back().begin, part.begin);
      merged.back().end = std::max(merged.back().end, part.end);
    } else {
      merged.push_back(part);
    }
  }
  if (behavior == SplitBehavior::MergedWithNext)
    std::reverse(merged.begin(), merged.end());
  for (const Part &part : merged)
    if (part.end > part.begin)
      pieces.push_back(text.substr(part.begin, part.end - part.begin));
  return {};
}

Result<std::string> Splitter::replace(std::string_view text, std::string_view replacement) const {
  constexpr std::size_t mostReplaced = std::size_t(1) << 30;
  std::string result;
  std::vector<Part> found;
  MOERT_RETURN_IF_ERROR(parts(text, found));
  for (const Part &part : found) {
    result += part.isMatch ? replacement : text.substr(part.begin, part.end - part.begin);
    if (result.size() > mostReplaced)
      return Status(ErrorCode::Unsupported, "replacing makes the text longer than 1 GiB");
  }
  return result;
}

} // namespace moert
