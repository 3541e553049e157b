#include "runtime/session/BytePairs.h"

#include <array>
#include <queue>
#include <tuple>

namespace moert {

namespace {

std::uint64_t pairOf(std::int32_t left, std::int32_t right) {
  return std::uint64_t(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

std::size_t hash(std::uint64_t pair) {
  pair *= 0x9e3779b97f4a7c15u; // 2^64 over the golden ratio: spreads neighbouring numbers
  return static_cast<std::size_t>(pair ^ pair >> 32);
}

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

// Words are shorter than this; for them a scan beats a heap.
constexpr std::size_t shortest = 32;

} // namespace

bool BytePairs::addMerge(std::int32_t left, std::int32_t right, std::uint32_t rank,
                         std::int32_t merged) {
  if (table.size() < 2 * (used + 1))
    grow();
  std::uint64_t pair = pairOf(left, right);
  std::size_t at = hash(pair) & (table.size() - 1);
  for (; table[at].id >= 0; at = (at + 1) & (table.size() - 1))
    if (table[at].pair == pair)
      return false;
  table[at] = {pair, rank, merged};
  ++used;
  return true;
}

void BytePairs::grow() {
  std::vector<Merge> old(table.empty() ? 1024 : 2 * table.size(), Merge{0, 0, -1});
  old.swap(table);
  for (const Merge &merge : old) {
    if (merge.id < 0)
      continue;
    std::size_t at = hash(merge.pair) & (table.size() - 1);
    while (table[at].id >= 0)
      at = (at + 1) & (table.size() - 1);
    table[at] = merge;
  }
}

const BytePairs::Merge *BytePairs::find(std::int32_t left, std::int32_t right) const {
  std::uint64_t pair = pairOf(left, right);
  for (std::size_t at = hash(pair) & (table.size() - 1); table[at].id >= 0;
       at = (at + 1) & (table.size() - 1))
    if (table[at].pair == pair)
      return &table[at];
  return nullptr;
}

void BytePairs::merge(std::vector<std::int32_t> &ids, std::size_t begin) const {
  if (ids.size() < begin + 2 || table.empty())
    return;
  if (ids.size() - begin <= shortest)
    mergeShort(ids, begin);
  else
    mergeLong(ids, begin);
}

void BytePairs::mergeShort(std::vector<std::int32_t> &ids, std::size_t begin) const {
  std::array<const Merge *, shortest> merges; // of each token with its right neighbour
  std::size_t count = ids.size() - begin;
  std::int32_t *tokens = ids.data() + begin;
  for (std::size_t i = 0; i + 1 < count; ++i)
    merges[i] = find(tokens[i], tokens[i + 1]);
  while (true) {
    std::size_t best = count;
    for (std::size_t i = 0; i + 1 < count; ++i)
      if (merges[i] && (best == count || merges[i]->rank < merges[best]->rank))
        best = i;
    if (best == count)
      break;
    tokens[best] = merges[best]->id;
    for (std::size_t i = best + 1; i + 1 < count; ++i) {
      tokens[i] = tokens[i + 1];
      merges[i] = merges[i + 1];
    }
    --count;
    if (best + 1 < count)
      merges[best] = find(tokens[best], tokens[best + 1]);
    if (best > 0)
      merges[best - 1] = find(tokens[best - 1], tokens[best]);
  }
  ids.resize(begin + count);
}

// A heap and a linked list: a hostile piece of a million equal letters takes n log n steps, not n
// squared.
void BytePairs::mergeLong(std::vector<std::int32_t> &ids, std::size_t begin) const {
  auto count = static_cast<std::int32_t>(ids.size() - begin);
  std::vector<Symbol> symbols(ids.size() - begin);
  for (std::int32_t i = 0; i < count; ++i)
    symbols[static_cast<std::size_t>(i)] = {ids[begin + static_cast<std::size_t>(i)], i - 1,
                                            i + 1 < count ? i + 1 : -1};
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  auto consider = [&](std::int32_t position) {
    if (position < 0)
      return;
    const Symbol &left = symbols[static_cast<std::size_t>(position)];
    if (left.next < 0)
      return;
    std::int32_t right = symbols[static_cast<std::size_t>(left.next)].id;
    if (const Merge *merge = find(left.id, right))
      queue.push({merge->rank, position, left.id, right, merge->id});
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
  ids.resize(begin);
  for (std::int32_t at = 0; at >= 0; at = symbols[static_cast<std::size_t>(at)].next)
    ids.push_back(symbols[static_cast<std::size_t>(at)].id);
}

} // namespace moert
