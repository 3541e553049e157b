// Threads that run the workgroups of one launch after the other.
//
// Workgroups are handed out dynamically from one atomic counter; the calling thread takes part. A
// step of a model has some fifty launches of a few microseconds, so idle workers spin for a while
// before they sleep, and a launch never waits for a worker that is late: whoever is there does the
// work.
#ifndef MOERT_DEVICE_CPU_THREADPOOL_H
#define MOERT_DEVICE_CPU_THREADPOOL_H

#include "runtime/abi/kernel_abi.h"
#include "runtime/base/Status.h"
#include "runtime/device/cpu/Memory.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <pthread.h>

namespace moert {

class ThreadPool {
public:
  // `threads` counts the calling thread; 0 means usableCores(). At most 4096.
  static Result<std::unique_ptr<ThreadPool>> create(unsigned threads);
  ~ThreadPool();

  unsigned size() const { return static_cast<unsigned>(scratch.size()); }

  // Exclusive use of the pool for the launches of one program. Workers do not sleep meanwhile.
  class Lease {
  public:
    explicit Lease(ThreadPool &pool) : pool(pool), lock(pool.mutex) {
      pool.busy.store(true, std::memory_order_relaxed);
    }
    ~Lease() { pool.busy.store(false, std::memory_order_relaxed); }
    Lease(const Lease &) = delete;

    // At least `bytes` for every thread.
    Status reserveScratch(std::uint64_t bytes);
    // Runs all workgroups and returns when they are done. One workgroup runs right here and wakes
    // nobody.
    void launch(moert_kernel_function function, const moert_kernel_arguments *arguments,
                std::uint32_t workgroups) {
      if (workgroups == 1 || pool.workers.empty())
        pool.runHere(function, arguments, workgroups);
      else
        pool.runTogether(function, arguments, workgroups);
    }

    // Calls `body(index)` for every index below `count`, spread over the threads.
    template <typename Body>
    void forEach(std::uint32_t count, const Body &body) {
      void *context = const_cast<Body *>(&body);
      moert_kernel_arguments arguments = {&context, nullptr};
      launch(
          [](const moert_kernel_arguments *arguments, void *, std::int64_t index) {
            (*static_cast<const Body *>(arguments->buffers[0]))(static_cast<std::uint32_t>(index));
          },
          &arguments, count);
    }

  private:
    ThreadPool &pool;
    std::lock_guard<std::mutex> lock;
  };

private:
  struct Start {
    ThreadPool *pool;
    unsigned thread;
  };

  ThreadPool() = default;
  void runHere(moert_kernel_function function, const moert_kernel_arguments *arguments,
               std::uint32_t workgroups);
  void runTogether(moert_kernel_function function, const moert_kernel_arguments *arguments,
                   std::uint32_t workgroups);
  void work(std::uint64_t seen, unsigned thread);
  void workerLoop(unsigned thread);
  void sleep(std::uint32_t epoch);
  void wakeSleepers();

  // The launch at hand. Written only between launches; read only by whoever has taken workgroups of
  // it.
  struct Job {
    moert_kernel_function function = nullptr;
    const moert_kernel_arguments *arguments = nullptr;
    std::uint32_t workgroups = 0;
  };

  // High half: the number of the launch. Low half: workgroups of it that nobody has taken yet.
  alignas(64) std::atomic<std::uint64_t> ticket{0};
  alignas(64) std::atomic<std::uint32_t> unfinished{0};
  alignas(64) std::atomic<std::uint32_t> sleepers{0};
  std::atomic<bool> busy{false};
  std::atomic<bool> stopping{false};
  alignas(64) Job job;
  std::vector<AlignedMemory> scratch; // by thread; 0 is the calling one
  std::vector<Start> starts;
  std::vector<pthread_t> workers;
  std::mutex mutex;
};

} // namespace moert

#endif
