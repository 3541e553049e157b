// Byte-pair encoding: neighbouring tokens become one, the best-ranked pair first.
#ifndef MOERT_SESSION_BYTEPAIRS_H
#define MOERT_SESSION_BYTEPAIRS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace moert {

class BytePairs {
public:
  // `left` next to `right` become `merged`. Lower ranks first; of equal ranks the leftmost pair.
  // False: the pair has a rank already.
  bool addMerge(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t merged);

  // Merges ids[begin..] until no pair is left that has a rank.
  void merge(std::vector<std::int32_t> &ids, std::size_t begin) const;

private:
  struct Merge {
    std::uint64_t pair; // both ids
    std::uint32_t rank;
    std::int32_t id; // -1: an empty place
  };
  const Merge *find(std::int32_t left, std::int32_t right) const;
  void mergeShort(std::vector<std::int32_t> &ids, std::size_t begin) const;
  void mergeLong(std::vector<std::int32_t> &ids, std::size_t begin) const;
  void grow();

  // A hash table with linear probing, at most half full; its size is a power of two. Most of the
  // time of encoding goes into looking up pairs.
  std::vector<Merge> table;
  std::size_t used = 0;
};

} // namespace moert

#endif
