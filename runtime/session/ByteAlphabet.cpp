#include "runtime/session/ByteAlphabet.h"

#include "runtime/session/Utf8.h"

namespace moert {

ByteAlphabet::ByteAlphabet() {
  bytes.fill(-1);
  std::uint16_t next = 0x100;
  for (std::uint16_t byte = 0; byte < 256; ++byte) {
    bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    codePoints[byte] = printable ? byte : next++;
    bytes[codePoints[byte]] = static_cast<std::int16_t>(byte);
  }
}

bool ByteAlphabet::decode(std::string_view token, std::string &result) const {
  result.clear();
  while (!token.empty()) {
    std::uint32_t code = 0;
    token.remove_prefix(decodeUtf8(token, code));
    if (code >= bytes.size() || bytes[code] < 0)
      return false;
    result += static_cast<char>(bytes[code]);
  }
  return true;
}

std::string ByteAlphabet::encode(std::string_view raw) const {
  std::string result;
  for (char c : raw)
    appendCodePoint(result, codePoints[static_cast<unsigned char>(c)]);
  return result;
}

} // namespace moert
