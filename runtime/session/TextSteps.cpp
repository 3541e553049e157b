#include "runtime/session/TextSteps.h"

#include "runtime/session/Utf8.h"

#include <algorithm>
#include <cstdlib>

#include <utf8proc.h>

namespace moert {

namespace {

Status normalizeUnicode(std::string &content, int options) {
  // Characters below U+0300 stay as they are in form C; compatibility forms begin at U+00A0, and
  // form D takes letters with accents apart.
  bool isPlain = std::all_of(content.begin(), content.end(), [&](char c) {
    auto byte = static_cast<unsigned char>(c);
    return byte < 0x80 || (byte < 0xcc && options == (UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  });
  if (isPlain)
    return {};
  utf8proc_uint8_t *result = nullptr;
  utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t *>(content.data()),
                                         static_cast<utf8proc_ssize_t>(content.size()), &result,
                                         static_cast<utf8proc_option_t>(options));
  if (length < 0)
    return {ErrorCode::Unsupported,
            std::string("the text cannot be normalized: ") + utf8proc_errmsg(length)};
  content.assign(reinterpret_cast<const char *>(result), static_cast<std::size_t>(length));
  std::free(result);
  return {};
}

void lowercase(std::string &content) {
  std::string result;
  result.reserve(content.size());
  for (std::size_t at = 0; at < content.size();) {
    std::uint32_t code = 0;
    at += decodeUtf8(std::string_view(content).substr(at), code);
    if (code == 0x130) // the only letter whose lower case is two characters: i and a dot
      result += "i\xcc\x87";
    else
      appendCodePoint(result, static_cast<std::uint32_t>(
                                  utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  }
  content = std::move(result);
}

} // namespace

Status Normalizer::apply(std::string &content) const {
  switch (kind) {
  case Nfc:
    return normalizeUnicode(content, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  case Nfd:
    return normalizeUnicode(content, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  case Nfkc:
    return normalizeUnicode(content, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
  case Nfkd:
    return normalizeUnicode(content, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  case Lowercase:
    lowercase(content);
    return {};
  case Prepend:
    if (!content.empty())
      content.insert(0, text);
    return {};
  case Replace: {
    MOERT_ASSIGN_OR_RETURN(content, pattern->replace(content, text));
    return {};
  }
  case StripLeft:
    content.erase(0, leadingSpace(content));
    return {};
  case StripRight:
    content.resize(content.size() - trailingSpace(content));
    return {};
  }
  return {};
}

static std::string withMarks(std::string_view text, std::string_view mark) {
  std::string result;
  result.reserve(text.size() + text.size() / 4);
  for (char c : text) {
    if (c == ' ')
      result += mark;
    else
      result += c;
  }
  return result;
}

Status PreTokenizer::apply(std::vector<TextPiece> &pieces, std::deque<std::string> &storage) const {
  std::vector<TextPiece> finer;
  std::vector<std::string_view> parts;
  for (TextPiece piece : pieces) {
    if (kind == PrefixSpace && !piece.text.starts_with(' '))
      piece.text = storage.emplace_back(" " + std::string(piece.text));
    if (kind == Metaspace) {
      std::string marked = withMarks(piece.text, mark);
      bool wants = scheme == Always || (scheme == First && piece.isFirst);
      if (wants && !marked.starts_with(mark))
        marked.insert(0, mark);
      piece.text = storage.emplace_back(std::move(marked));
    }
    if (!splitter) {
      finer.push_back(piece);
      continue;
    }
    parts.clear();
    MOERT_RETURN_IF_ERROR(splitter->split(piece.text, parts));
    for (std::string_view part : parts)
      finer.push_back({part, piece.isFirst && part.data() == piece.text.data()});
  }
  pieces.swap(finer);
  return {};
}

} // namespace moert
