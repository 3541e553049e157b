// The bytes of a session's states, cut into blocks (PAGED) or slots (SLOT), with copy on write.
#ifndef MOERT_SESSION_STATESTORE_H
#define MOERT_SESSION_STATESTORE_H

#include "runtime/session/BlockPool.h"
#include "runtime/session/Program.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace moert {

// All PAGED states share one numbering of blocks and one block table, and all SLOT states one
// numbering of slots: block 7 of a sequence's cache is block 7 in the pool of every layer.
class StateStore {
public:
  enum Kind : unsigned { Blocks = 0, Slots = 1 };

  // `limit`: most bytes of all pools together; 0: none.
  StateStore(const moec::bundle::Program &program, std::uint64_t limit,
             std::shared_ptr<Device> device);

  bool has(Kind kind) const { return bytesEach[kind] != 0; }
  // The pools, by state of the program.
  std::span<const MemorySpan> spans() const { return pools; }
  std::uint64_t bytes() const;

  // Makes sure that `count` more can be allocated. Contents and numbers stay; addresses may change.
  Status reserve(Kind kind, std::uint64_t count);
  // A fresh one, all zeros; reserve() came first. Fails only where the device does.
  Result<std::uint32_t> allocate(Kind kind);
  void retain(Kind kind, std::uint32_t index) { free[kind].retain(index); }
  void release(Kind kind, std::uint32_t index) { free[kind].release(index); }
  bool isShared(Kind kind, std::uint32_t index) const { return free[kind].isShared(index); }
  // A private copy of a shared one, whose share is given up; reserve() came first. Fails only where
  // the device does; then nothing is given up.
  Result<std::uint32_t> makePrivate(Kind kind, std::uint32_t index);

private:
  Status resize(Kind kind, std::uint32_t capacity);

  struct State {
    Kind kind;
    std::uint64_t bytes; // of one block or slot
    DeviceMemory memory;
    MemorySpan part(std::uint32_t index) const { return {memory.data() + index * bytes, bytes}; }
  };
  std::shared_ptr<Device> device; // outlives the memory
  std::vector<State> states;
  std::vector<MemorySpan> pools;
  BlockPool free[2];
  std::uint32_t touched[2] = {0, 0};   // from here on blocks were never used and are zeros still
  std::uint64_t bytesEach[2] = {0, 0}; // of one block or slot in all states together
  std::uint64_t limit;
};

} // namespace moert

#endif
