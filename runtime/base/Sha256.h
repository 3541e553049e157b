// SHA-256 digests of bytes and files.
#ifndef MOERT_BASE_SHA256_H
#define MOERT_BASE_SHA256_H

#include "runtime/base/File.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace moert {

using Sha256Digest = std::array<std::uint8_t, 32>;

// A digest in the making, fed piece by piece.
class Sha256 {
public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  Sha256Digest finish();

private:
  // Holds OpenSSL's SHA256_CTX, whose header stays out of ours.
  alignas(8) std::array<std::byte, 128> state;
};

Sha256Digest sha256(std::span<const std::byte> bytes);
Sha256Digest sha256(std::string_view text);
// Of `bytes` bytes from `offset` on, read in pieces.
Result<Sha256Digest> sha256(const File &file, std::uint64_t offset, std::uint64_t bytes);

std::string toHex(std::span<const std::uint8_t> bytes);

} // namespace moert

#endif
