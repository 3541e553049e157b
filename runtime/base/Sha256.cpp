#include "runtime/base/Sha256.h"

#include <algorithm>
#include <new>
#include <vector>

// The low-level interface, deprecated in favour of EVP, keeps the static link small: EVP would pull
// in providers.
#include <openssl/sha.h>

namespace moert {

static_assert(sizeof(SHA256_CTX) <= 128);

Sha256::Sha256() { SHA256_Init(new (state.data()) SHA256_CTX); }

void Sha256::update(std::span<const std::byte> bytes) {
  SHA256_Update(reinterpret_cast<SHA256_CTX *>(state.data()), bytes.data(), bytes.size());
}

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  SHA256_Final(digest.data(), reinterpret_cast<SHA256_CTX *>(state.data()));
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

Sha256Digest sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

Result<Sha256Digest> sha256(const File &file, std::uint64_t offset, std::uint64_t bytes) {
  std::vector<std::byte> piece(std::min<std::uint64_t>(bytes, 1 << 20));
  Sha256 hash;
  while (bytes != 0) {
    std::span<std::byte> part(piece.data(), std::min<std::uint64_t>(bytes, piece.size()));
    MOERT_RETURN_IF_ERROR(file.readAt(part, offset));
    hash.update(part);
    offset += part.size();
    bytes -= part.size();
  }
  return hash.finish();
}

std::string toHex(std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

} // namespace moert
