// How byte-level vocabularies write bytes.
#ifndef MOERT_SESSION_BYTEALPHABET_H
#define MOERT_SESSION_BYTEALPHABET_H

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace moert {

// Each byte is one printable character: printable Latin-1 as itself, the others from U+0100 on.
class ByteAlphabet {
public:
  ByteAlphabet();
  // Whether `token` (valid UTF-8) is written in the alphabet; if so, the bytes it stands for.
  bool decode(std::string_view token, std::string &result) const;
  std::string encode(std::string_view raw) const;

private:
  std::array<std::int16_t, 0x180> bytes; // by code point; -1: not in the alphabet
  std::array<std::uint16_t, 256> codePoints;
};

} // namespace moert

#endif
