//===- Launcher.h - runs kernels on several threads and takes the time ------------------------===//

#ifndef MOEC_BENCHMARKS_LAUNCHER_H
#define MOEC_BENCHMARKS_LAUNCHER_H

#include "runtime/abi/kernel_abi.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace moec_bench {

/// Memory in huge pages where the system has them.
class Memory {
public:
  explicit Memory(size_t bytes);
  ~Memory();
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  template <typename T>
  T *as() {
    return static_cast<T *>(address);
  }

private:
  void *address;
  size_t bytes;
};

/// The kernels of a shared object.
class Library {
public:
  explicit Library(const std::string &bytes);
  moert_kernel_function find(const std::string &name) const;

private:
  const moert_kernel_table *table = nullptr;
};

struct Launch {
  moert_kernel_function function;
  std::vector<void *> buffers;
  std::vector<int64_t> dimensions;
  int64_t workgroups;
  size_t scratchBytes;
};

/// Seconds that the launches, one after the other, take on `threads` threads: the shortest of some
/// repetitions, which go on for at least `seconds`.
double measure(const std::vector<Launch> &launches, int threads, double seconds = 1);

} // namespace moec_bench

#endif // MOEC_BENCHMARKS_LAUNCHER_H
