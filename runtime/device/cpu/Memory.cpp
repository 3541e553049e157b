#include "runtime/device/cpu/Memory.h"

#include "runtime/base/CheckedMath.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define MOERT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MOERT_ADDRESS_SANITIZER 1
#endif
#endif

namespace moert {

namespace {

constexpr std::uint64_t hugePage = std::uint64_t(2) << 20;

// Below this, pages of their own are a waste. Under AddressSanitizer everything comes from malloc,
// which it watches.
#ifdef MOERT_ADDRESS_SANITIZER
constexpr std::uint64_t mapFrom = UINT64_MAX;
#else
constexpr std::uint64_t mapFrom = std::uint64_t(1) << 20;
#endif

Status outOfMemory(std::uint64_t bytes, std::string_view what) {
  return {ErrorCode::OutOfMemory,
          "cannot get " + std::to_string(bytes) + " bytes of memory for " + std::string(what),
          {},
          "use a machine with more memory, or fewer and shorter sequences"};
}

} // namespace

AlignedMemory::AlignedMemory(AlignedMemory &&other) noexcept
    : address(std::exchange(other.address, nullptr)), length(std::exchange(other.length, 0)),
      capacity(std::exchange(other.capacity, 0)), mapped(other.mapped) {}

AlignedMemory &AlignedMemory::operator=(AlignedMemory &&other) noexcept {
  std::swap(address, other.address);
  std::swap(length, other.length);
  std::swap(capacity, other.capacity);
  std::swap(mapped, other.mapped);
  return *this;
}

AlignedMemory::~AlignedMemory() { release(); }

void AlignedMemory::release() {
  if (mapped)
    munmap(address, capacity);
  else
    std::free(address);
  address = nullptr;
  length = capacity = 0;
  mapped = false;
}

Result<AlignedMemory> AlignedMemory::allocate(std::uint64_t bytes, std::string_view what) {
  AlignedMemory memory;
  MOERT_RETURN_IF_ERROR(memory.grow(bytes, what));
  return memory;
}

Status AlignedMemory::grow(std::uint64_t bytes, std::string_view what) {
  if (bytes <= capacity && address) {
    length = bytes > length ? bytes : length;
    return {};
  }
  bool map = mapped || bytes >= mapFrom;
  std::uint64_t wanted;
  if (!checkedAlign(bytes == 0 ? 1 : bytes, map ? hugePage : memoryAlignment, wanted) ||
      wanted > static_cast<std::uint64_t>(PTRDIFF_MAX))
    return outOfMemory(bytes, what);
  if (mapped) {
    void *moved = mremap(address, capacity, wanted, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED)
      return outOfMemory(bytes, what);
    address = static_cast<std::byte *>(moved);
  } else if (map) {
    void *fresh = mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED)
      return outOfMemory(bytes, what);
    if (length != 0)
      std::memcpy(fresh, address, length);
    std::free(address);
    address = static_cast<std::byte *>(fresh);
  } else {
    void *fresh = std::aligned_alloc(memoryAlignment, wanted);
    if (!fresh)
      return outOfMemory(bytes, what);
    if (length != 0)
      std::memcpy(fresh, address, length);
    std::memset(static_cast<std::byte *>(fresh) + length, 0, wanted - length);
    std::free(address);
    address = static_cast<std::byte *>(fresh);
  }
  if (map)
    madvise(address, wanted, MADV_HUGEPAGE); // only a wish
  mapped = map;
  length = bytes;
  capacity = wanted;
  return {};
}

} // namespace moert
