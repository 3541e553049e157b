#include "runtime/session/Splitter.h"

#include "runtime/session/Utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace moert {

struct Splitter::Code {
  pcre2_code *pattern = nullptr;
  ~Code() { pcre2_code_free(pattern); }
};

Splitter::Splitter(std::unique_ptr<Code> code) : code(std::move(code)) {}
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
  ~Matcher() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(limits);
  }
};

} // namespace

Result<Splitter> Splitter::create(const std::string &pattern, bool literal) {
  constexpr std::size_t longestPattern = 1 << 16;
  if (pattern.size() > longestPattern)
    return Status(ErrorCode::Unsupported,
                  "the pattern has " + std::to_string(pattern.size()) + " bytes");
  int error;
  PCRE2_SIZE offset;
  std::uint32_t options =
      PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
  auto code = std::make_unique<Code>();
  code->pattern = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                options, &error, &offset, nullptr);
  if (!code->pattern)
    return Status(ErrorCode::Unsupported, "the pattern is not understood at byte " +
                                              std::to_string(offset) + ": " + errorText(error));
  pcre2_jit_compile(code->pattern, PCRE2_JIT_COMPLETE); // without it matching is only slower
  return Splitter(std::move(code));
}

Status Splitter::split(std::string_view text, std::vector<std::string_view> &pieces) const {
  if (text.empty())
    return {};
  Matcher matcher;
  matcher.data = pcre2_match_data_create_from_pattern(code->pattern, nullptr);
  matcher.limits = pcre2_match_context_create(nullptr);
  if (!matcher.data || !matcher.limits)
    return {ErrorCode::OutOfMemory, "no memory for a regular expression"};
  // A tokenizer's own patterns need a few steps a character.
  pcre2_set_match_limit(matcher.limits, 5'000'000);
  pcre2_set_heap_limit(matcher.limits, 64 << 10); // KiB
  auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::size_t at = 0, cut = 0;
  while (at <= text.size()) {
    int found = pcre2_match(code->pattern, subject, text.size(), at, PCRE2_NO_UTF_CHECK,
                            matcher.data, matcher.limits);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = pcre2_match(code->pattern, subject, text.size(), at,
                          PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, matcher.data, matcher.limits);
    if (found == PCRE2_ERROR_NOMATCH)
      break;
    if (found < 0)
      return {ErrorCode::Unsupported,
              "the tokenizer's pattern fails on this text: " + errorText(found)};
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(matcher.data);
    std::size_t begin = range[0], end = range[1];
    // \K in a look-around can turn a match around; nothing sensible follows from it.
    if (begin < cut || end < begin)
      return {ErrorCode::Unsupported, "the tokenizer's pattern matches backwards"};
    if (begin > cut)
      pieces.push_back(text.substr(cut, begin - cut));
    if (end > begin)
      pieces.push_back(text.substr(begin, end - begin));
    cut = end;
    at = end;
    if (end == begin) {
      if (end == text.size())
        break;
      at += nextUtf8(text.substr(end)).bytes;
    }
  }
  if (cut < text.size())
    pieces.push_back(text.substr(cut));
  return {};
}

} // namespace moert
