// Memory for weights, arenas and states: aligned, zeroed when fresh, on huge pages where it is
// large.
#ifndef MOERT_DEVICE_CPU_MEMORY_H
#define MOERT_DEVICE_CPU_MEMORY_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace moert {

inline constexpr std::size_t memoryAlignment = 64;

// A block of memory that can grow in place of itself. Its address may change when it grows.
class AlignedMemory {
public:
  AlignedMemory() = default;
  AlignedMemory(AlignedMemory &&other) noexcept;
  AlignedMemory &operator=(AlignedMemory &&other) noexcept;
  AlignedMemory(const AlignedMemory &) = delete;
  AlignedMemory &operator=(const AlignedMemory &) = delete;
  ~AlignedMemory();

  // Zeroed. `what` names the purpose in the out-of-memory error.
  static Result<AlignedMemory> allocate(std::uint64_t bytes, std::string_view what);
  // To at least `bytes`; keeps the content, zeroes what is new. Unchanged on failure.
  Status grow(std::uint64_t bytes, std::string_view what);
  void release();

  std::byte *data() const { return address; }
  std::uint64_t size() const { return length; }
  std::span<std::byte> span() const { return {address, length}; }

private:
  std::byte *address = nullptr;
  std::uint64_t length = 0;   // as asked for
  std::uint64_t capacity = 0; // as allocated
  bool mapped = false;
};

} // namespace moert

#endif
