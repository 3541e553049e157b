// Bytes to well-formed UTF-8.
#ifndef MOERT_SESSION_UTF8_H
#define MOERT_SESSION_UTF8_H

#include <cstdint>
#include <string>
#include <string_view>

namespace moert {

// What begins at the front of some bytes.
struct Utf8Unit {
  enum Kind { Character, Invalid, Incomplete } kind;
  // Bytes that it takes. Invalid: the longest part that could have begun a character, at least 1.
  // Incomplete: all that is left, which more bytes might complete.
  unsigned bytes;
};
Utf8Unit nextUtf8(std::string_view bytes); // not empty

// Appends `bytes` to `text` with U+FFFD for whatever is no UTF-8. Unless `last`, an incomplete
// character at the end is left out. Returns how many bytes were used.
std::size_t appendUtf8(std::string &text, std::string_view bytes, bool last);

// The code point that valid UTF-8 begins with, and its bytes.
unsigned decodeUtf8(std::string_view text, std::uint32_t &codePoint);

// The last character of valid UTF-8; empty for an empty text.
std::string_view lastCharacter(std::string_view text);

// Whether Unicode calls the character white space.
bool isWhiteSpace(std::uint32_t codePoint);
// Bytes of white space at the front and at the end of valid UTF-8.
std::size_t leadingSpace(std::string_view text);
std::size_t trailingSpace(std::string_view text);

void appendCodePoint(std::string &text, std::uint32_t codePoint);

} // namespace moert

#endif
