#include "runtime/device/cpu/ReadBandwidth.h"

#include "runtime/device/cpu/Memory.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>

namespace moert {

namespace {

typedef long long Vector __attribute__((vector_size(16)));
constexpr std::int64_t line = 64 / sizeof(Vector);

// Four streams with prefetching reach more than one does: what a program is measured against is the
// most that was found.
void readAll(const Vector *data, std::int64_t count) {
  constexpr std::int64_t streams = 4, ahead = 1024 / sizeof(Vector);
  Vector sums[streams * line] = {};
  const std::int64_t each = count / streams;
  for (std::int64_t i = 0; i + line <= each; i += line)
    for (std::int64_t stream = 0; stream < streams; ++stream) {
      const Vector *at = data + stream * each + i;
      __builtin_prefetch(at + ahead);
      for (std::int64_t j = 0; j < line; ++j)
        sums[stream * line + j] ^= at[j];
    }
  // Keeps the compiler from leaving out the reading.
  asm volatile("" : : "m"(sums) : "memory");
}

} // namespace

double measureReadBandwidth(ThreadPool &pool) {
  constexpr std::int64_t bytes = std::int64_t(1) << 29;
  constexpr std::uint32_t pieces = 256;
  Result<AlignedMemory> array = AlignedMemory::allocate(bytes, "the array to be read");
  if (!array.isOk())
    return 0;
  std::memset((*array).data(), 1, bytes);
  const auto *begin = reinterpret_cast<const Vector *>((*array).data());
  const std::int64_t perPiece = bytes / pieces / std::int64_t(sizeof(Vector));

  using Clock = std::chrono::steady_clock;
  auto secondsSince = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  ThreadPool::Lease lease(pool);
  double best = 1e30;
  for (Clock::time_point first = Clock::now(); secondsSince(first) < 0.5;) {
    Clock::time_point start = Clock::now();
    lease.forEach(pieces, [&](std::uint32_t piece) { readAll(begin + piece * perPiece, perPiece); });
    best = std::min(best, secondsSince(start));
  }
  return double(bytes) / best;
}

} // namespace moert
