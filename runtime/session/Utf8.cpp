#include "runtime/session/Utf8.h"

namespace moert {

Utf8Unit nextUtf8(std::string_view bytes) {
  auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  unsigned char lead = at(0);
  if (lead < 0x80)
    return {Utf8Unit::Character, 1};
  // The first continuation byte of some leads is limited further: no overlong forms, no surrogates,
  // nothing past U+10FFFF.
  unsigned length;
  unsigned char low = 0x80, high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    low = lead == 0xe0 ? 0xa0 : low;
    high = lead == 0xed ? 0x9f : high;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    low = lead == 0xf0 ? 0x90 : low;
    high = lead == 0xf4 ? 0x8f : high;
  } else {
    return {Utf8Unit::Invalid, 1};
  }
  for (unsigned i = 1; i < length; ++i) {
    if (i == bytes.size())
      return {Utf8Unit::Incomplete, i};
    if (at(i) < low || at(i) > high)
      return {Utf8Unit::Invalid, i};
    low = 0x80;
    high = 0xbf;
  }
  return {Utf8Unit::Character, length};
}

std::size_t appendUtf8(std::string &text, std::string_view bytes, bool last) {
  std::size_t used = 0;
  while (used < bytes.size()) {
    Utf8Unit unit = nextUtf8(bytes.substr(used));
    if (unit.kind == Utf8Unit::Incomplete && !last)
      break;
    if (unit.kind == Utf8Unit::Character)
      text.append(bytes, used, unit.bytes);
    else
      text += "\xef\xbf\xbd";
    used += unit.bytes;
  }
  return used;
}

unsigned decodeUtf8(std::string_view text, std::uint32_t &codePoint) {
  auto at = [&](unsigned i) { return static_cast<unsigned char>(text[i]); };
  unsigned length = nextUtf8(text).bytes;
  static constexpr unsigned char leadBits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  codePoint = at(0) & leadBits[length];
  for (unsigned i = 1; i < length; ++i)
    codePoint = codePoint << 6 | (at(i) & 0x3fu);
  return length;
}

bool isWhiteSpace(std::uint32_t code) {
  return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

std::size_t leadingSpace(std::string_view text) {
  std::size_t used = 0;
  while (used < text.size()) {
    std::uint32_t code = 0;
    unsigned bytes = decodeUtf8(text.substr(used), code);
    if (!isWhiteSpace(code))
      break;
    used += bytes;
  }
  return used;
}

std::string_view lastCharacter(std::string_view text) {
  std::size_t at = text.size();
  while (at > 0 && (static_cast<unsigned char>(text[--at]) & 0xc0) == 0x80)
    ;
  return text.substr(at);
}

std::size_t trailingSpace(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view last = lastCharacter(rest);
    std::uint32_t code = 0;
    decodeUtf8(last, code);
    if (!isWhiteSpace(code))
      break;
    rest.remove_suffix(last.size());
  }
  return text.size() - rest.size();
}

void appendCodePoint(std::string &text, std::uint32_t codePoint) {
  auto continuation = [&](unsigned shift) {
    text += static_cast<char>(0x80 | (codePoint >> shift & 0x3f));
  };
  if (codePoint < 0x80) {
    text += static_cast<char>(codePoint);
  } else if (codePoint < 0x800) {
    text += static_cast<char>(0xc0 | codePoint >> 6);
    continuation(0);
  } else if (codePoint < 0x10000) {
    text += static_cast<char>(0xe0 | codePoint >> 12);
    continuation(6);
    continuation(0);
  } else {
    text += static_cast<char>(0xf0 | codePoint >> 18);
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

} // namespace moert
