// Byte-pair encoding: a piece of text to tokens by merging pairs, the best-ranked first.
#ifndef MOERT_SESSION_BYTEPAIRS_H
#define MOERT_SESSION_BYTEPAIRS_H

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace moert {

class BytePairs {
public:
  BytePairs() { byteTokens.fill(-1); }

  void setByteToken(std::uint8_t byte, std::int32_t id) { byteTokens[byte] = id; }
  // `left` next to `right` become `merged`. Lower ranks first. False: the pair has a rank already.
  bool addMerge(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t merged) {
    return merges.emplace(key(left, right), Merge{rank, merged}).second;
  }

  // Appends the tokens of `piece`. Returns false, with nothing appended, when a byte has no token.
  bool encode(std::string_view piece, std::vector<std::int32_t> &ids) const;

private:
  struct Merge {
    std::uint32_t rank;
    std::int32_t id;
  };
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return std::uint64_t(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::array<std::int32_t, 256> byteTokens;
  std::unordered_map<std::uint64_t, Merge> merges;
};

} // namespace moert

#endif
