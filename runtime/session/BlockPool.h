// Which blocks of a pool are taken, and by how many. The bytes themselves live elsewhere.
#ifndef MOERT_SESSION_BLOCKPOOL_H
#define MOERT_SESSION_BLOCKPOOL_H

#include <cassert>
#include <cstdint>
#include <vector>

namespace moert {

// Blocks are numbered from 0. A block that several sequences or snapshots share may only be read.
class BlockPool {
public:
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(references.size()); }
  std::uint32_t available() const { return static_cast<std::uint32_t>(unused.size()); }

  // Adds blocks at the end.
  void grow(std::uint32_t newCapacity) {
    std::uint32_t old = capacity();
    assert(newCapacity >= old);
    references.resize(newCapacity, 0);
    // Taken from the back: the lowest numbers first, so that a small use stays in few pages.
    std::vector<std::uint32_t> added;
    for (std::uint32_t block = newCapacity; block-- > old;)
      added.push_back(block);
    unused.insert(unused.begin(), added.begin(), added.end());
  }

  // There must be one available.
  std::uint32_t allocate() {
    assert(!unused.empty());
    std::uint32_t block = unused.back();
    unused.pop_back();
    references[block] = 1;
    return block;
  }
  void retain(std::uint32_t block) {
    assert(references[block] != 0);
    ++references[block];
  }
  void release(std::uint32_t block) {
    assert(references[block] != 0);
    if (--references[block] == 0)
      unused.push_back(block);
  }
  bool isShared(std::uint32_t block) const { return references[block] > 1; }

private:
  std::vector<std::uint32_t> references;
  std::vector<std::uint32_t> unused;
};

} // namespace moert

#endif
