#include "Launcher.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

using namespace moec_bench;

Memory::Memory(size_t size) : bytes(size) {
  address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    abort();
  madvise(address, bytes, MADV_HUGEPAGE);
}

Memory::~Memory() { munmap(address, bytes); }

Library::Library(const std::string &bytes) {
  int file = memfd_create("kernels", MFD_CLOEXEC);
  if (write(file, bytes.data(), bytes.size()) != ssize_t(bytes.size()))
    abort();
  std::string path = "/proc/self/fd/" + std::to_string(file);
  // Stays loaded: the program ends soon.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    abort();
  table = reinterpret_cast<moert_kernel_query_function>(dlsym(library, MOERT_KERNEL_QUERY_NAME))();
}

moert_kernel_function Library::find(const std::string &name) const {
  for (uint32_t i = 0; i < table->count; ++i)
    if (name == table->entries[i].name)
      return table->entries[i].function;
  abort();
}

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {
/// Threads meet here; they spin, because a measurement waits for nothing else.
class Barrier {
public:
  explicit Barrier(int threads) : threads(threads) {}
  void wait() {
    int round = rounds.load();
    if (arrived.fetch_add(1) + 1 == threads) {
      arrived = 0;
      ++rounds;
      return;
    }
    for (int spins = 0; rounds.load() == round; ++spins)
      if (spins > 10000)
        std::this_thread::yield();
  }

private:
  int threads;
  std::atomic<int> arrived{0}, rounds{0};
};
} // namespace

double moec_bench::measure(const std::vector<Launch> &launches, int threads, double seconds) {
  Barrier barrier(threads);
  std::vector<std::atomic<int64_t>> next(launches.size());
  std::atomic<bool> stop{false};
  double best = 1e30;
  size_t scratchBytes = 64;
  for (const Launch &launch : launches)
    scratchBytes = std::max(scratchBytes, (launch.scratchBytes + 63) / 64 * 64);

  auto runThread = [&](int thread) {
    std::unique_ptr<void, decltype(&free)> scratch(aligned_alloc(64, scratchBytes), free);
    memset(scratch.get(), 0xcd, scratchBytes);
    double start = now();
    for (int repetition = 0; !stop; ++repetition) {
      if (thread == 0)
        for (std::atomic<int64_t> &counter : next)
          counter = 0;
      // Before the others can start: on a busy machine they may be done when this thread comes
      // back.
      double begin = now();
      barrier.wait();
      for (size_t i = 0; i < launches.size(); ++i) {
        const Launch &launch = launches[i];
        moert_kernel_arguments arguments = {launch.buffers.data(), launch.dimensions.data()};
        for (int64_t workgroup; (workgroup = next[i]++) < launch.workgroups;)
          launch.function(&arguments, scratch.get(), workgroup);
        barrier.wait();
      }
      if (thread == 0) {
        double end = now();
        if (repetition > 0)
          best = std::min(best, end - begin);
        if (repetition > 2 && end - start > seconds)
          stop = true;
      }
      barrier.wait();
    }
  };
  std::vector<std::thread> pool;
  for (int thread = 1; thread < threads; ++thread)
    pool.emplace_back(runThread, thread);
  runThread(0);
  for (std::thread &thread : pool)
    thread.join();
  return best;
}
