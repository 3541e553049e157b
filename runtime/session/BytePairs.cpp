#include "runtime/session/BytePairs.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace moert {

namespace {

struct Symbol {
  std::int32_t id;       // -1: merged into its left neighbour
  std::int32_t previous; // -1: none
  std::int32_t next;     // -1: none
};

// A pair that could be merged when it was found; stale if either side has changed since.
struct Candidate {
  std::uint32_t rank;
  std::int32_t position; // of the left symbol
  std::int32_t left, right, merged;
  bool operator>(const Candidate &other) const {
    return std::tie(rank, position) > std::tie(other.rank, other.position);
  }
};

} // namespace

// A heap and a linked list: a hostile piece of a million equal letters takes n log n steps, not n
// squared.
bool BytePairs::encode(std::string_view piece, std::vector<std::int32_t> &ids) const {
  std::vector<Symbol> symbols(piece.size());
  auto count = static_cast<std::int32_t>(piece.size());
  for (std::int32_t i = 0; i < count; ++i) {
    auto at = static_cast<std::size_t>(i);
    std::int32_t id = byteTokens[static_cast<unsigned char>(piece[at])];
    if (id < 0)
      return false;
    symbols[at] = {id, i - 1, i + 1 < count ? i + 1 : -1};
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  auto consider = [&](std::int32_t position) {
    if (position < 0)
      return;
    const Symbol &left = symbols[static_cast<std::size_t>(position)];
    if (left.next < 0)
      return;
    std::int32_t right = symbols[static_cast<std::size_t>(left.next)].id;
    if (auto merge = merges.find(key(left.id, right)); merge != merges.end())
      queue.push({merge->second.rank, position, left.id, right, merge->second.id});
  };
  for (std::int32_t i = 0; i + 1 < count; ++i)
    consider(i);
  while (!queue.empty()) {
    Candidate best = queue.top();
    queue.pop();
    Symbol &left = symbols[static_cast<std::size_t>(best.position)];
    if (left.id != best.left || left.next < 0)
      continue;
    Symbol &right = symbols[static_cast<std::size_t>(left.next)];
    if (right.id != best.right)
      continue;
    left.id = best.merged;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0)
      symbols[static_cast<std::size_t>(left.next)].previous = best.position;
    consider(left.previous);
    consider(best.position);
  }
  for (std::int32_t at = count ? 0 : -1; at >= 0; at = symbols[static_cast<std::size_t>(at)].next)
    ids.push_back(symbols[static_cast<std::size_t>(at)].id);
  return true;
}

} // namespace moert
