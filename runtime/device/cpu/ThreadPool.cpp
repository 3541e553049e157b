#include "runtime/device/cpu/ThreadPool.h"

#include "runtime/device/cpu/CpuFeatures.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace moert {

namespace {

constexpr unsigned mostThreads = 4096;

// How long an idle worker spins. Between the steps of one generation lie some tens of microseconds
// (sampling, printing); inside a program a worker may wait for a long launch that only one thread
// can run.
constexpr std::chrono::microseconds idleSpin{100};
constexpr std::chrono::microseconds busySpin{2000};

void pause() { __builtin_ia32_pause(); }

// Spins, and from time to time looks at the clock and lets others run.
class Spinner {
public:
  // Whether there is still time to spin.
  bool spin(std::chrono::microseconds limit) {
    pause();
    if (++turns % 256 != 0)
      return true;
    auto now = std::chrono::steady_clock::now();
    if (turns == 256)
      start = now;
    else if (now - start > limit)
      return false;
    // Another process may need this CPU, perhaps the very thread that we wait for.
    if (now - start > std::chrono::microseconds(20))
      sched_yield();
    return true;
  }

private:
  unsigned turns = 0;
  std::chrono::steady_clock::time_point start;
};

std::uint32_t epochOf(std::uint64_t ticket) { return static_cast<std::uint32_t>(ticket >> 32); }
std::uint32_t untakenOf(std::uint64_t ticket) { return static_cast<std::uint32_t>(ticket); }

// The half of the ticket that changes with every launch serves as the futex word.
static_assert(std::endian::native == std::endian::little);
std::uint32_t *epochWord(std::atomic<std::uint64_t> &ticket) {
  return reinterpret_cast<std::uint32_t *>(&ticket) + 1;
}

} // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(unsigned threads) {
  if (threads == 0)
    threads = usableCores();
  if (threads > mostThreads)
    return Status(ErrorCode::InvalidArgument, std::to_string(threads) + " threads; at most " +
                                                  std::to_string(mostThreads) + " are possible");
  std::unique_ptr<ThreadPool> pool(new ThreadPool);
  pool->scratch.resize(threads);
  // Signals belong to the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = 0;
  pool->starts.reserve(threads); // the workers keep pointers into it
  for (unsigned thread = 1; thread < threads && !failed; ++thread) {
    pool->starts.push_back({pool.get(), thread});
    auto run = [](void *start) -> void * {
      static_cast<Start *>(start)->pool->workerLoop(static_cast<Start *>(start)->thread);
      return nullptr;
    };
    pthread_t worker;
    failed = pthread_create(&worker, nullptr, run, &pool->starts.back());
    if (!failed)
      pool->workers.push_back(worker);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed)
    return Status(ErrorCode::OutOfMemory,
                  "cannot start thread " + std::to_string(pool->workers.size() + 2) + " of " +
                      std::to_string(threads) + ": " + std::strerror(failed),
                  {}, "use fewer threads");
  return pool;
}

ThreadPool::~ThreadPool() {
  stopping.store(true, std::memory_order_relaxed);
  // A launch of nothing: everybody looks up and sees `stopping`.
  ticket.store(std::uint64_t(epochOf(ticket.load(std::memory_order_relaxed)) + 1) << 32,
               std::memory_order_seq_cst);
  wakeSleepers();
  for (pthread_t worker : workers)
    pthread_join(worker, nullptr);
}

Status ThreadPool::Lease::reserveScratch(std::uint64_t bytes) {
  for (AlignedMemory &each : pool.scratch)
    MOERT_RETURN_IF_ERROR(each.grow(bytes, "the scratch space of a kernel"));
  return {};
}

void ThreadPool::runHere(moert_kernel_function function, const moert_kernel_arguments *arguments,
                         std::uint32_t workgroups) {
  for (std::uint32_t i = 0; i < workgroups; ++i)
    function(arguments, scratch[0].data(), i);
}

void ThreadPool::runTogether(moert_kernel_function function,
                             const moert_kernel_arguments *arguments, std::uint32_t workgroups) {
  if (workgroups == 0)
    return;
  job = {function, arguments, workgroups};
  unfinished.store(workgroups, std::memory_order_relaxed);
  std::uint32_t epoch = epochOf(ticket.load(std::memory_order_relaxed)) + 1;
  std::uint64_t fresh = std::uint64_t(epoch) << 32 | workgroups;
  // Pairs with sleep(): either the sleeper sees the new epoch, or we see the sleeper.
  ticket.store(fresh, std::memory_order_seq_cst);
  wakeSleepers();
  work(fresh, 0);
  Spinner spinner;
  while (unfinished.load(std::memory_order_acquire) != 0)
    (void)spinner.spin(std::chrono::hours(24 * 365));
}

void ThreadPool::wakeSleepers() {
  if (sleepers.load(std::memory_order_seq_cst) != 0)
    syscall(SYS_futex, epochWord(ticket), FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
}

void ThreadPool::sleep(std::uint32_t epoch) {
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (epochOf(ticket.load(std::memory_order_seq_cst)) == epoch)
    syscall(SYS_futex, epochWord(ticket), FUTEX_WAIT_PRIVATE, epoch, nullptr, nullptr, 0);
  sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void ThreadPool::work(std::uint64_t seen, unsigned thread) {
  std::uint32_t epoch = epochOf(seen);
  auto threads = static_cast<std::uint32_t>(scratch.size());
  while (epochOf(seen) == epoch && untakenOf(seen) != 0) {
    std::uint32_t untaken = untakenOf(seen);
    // Large pieces while there is much left, single workgroups in the end, so that all finish
    // together.
    std::uint32_t taken = std::max(untaken / (4 * threads), 1u);
    if (!ticket.compare_exchange_weak(seen, seen - taken, std::memory_order_acq_rel,
                                      std::memory_order_acquire))
      continue;
    // These workgroups are ours: the launch cannot end, nor `job` change, before they are done.
    std::uint32_t first = job.workgroups - untaken;
    void *space = scratch[thread].data();
    for (std::uint32_t i = first; i < first + taken; ++i)
      job.function(job.arguments, space, i);
    unfinished.fetch_sub(taken, std::memory_order_release);
    seen = ticket.load(std::memory_order_acquire);
  }
}

void ThreadPool::workerLoop(unsigned thread) {
  pthread_setname_np(pthread_self(), "moert-worker");
  Spinner spinner;
  while (true) {
    std::uint64_t seen = ticket.load(std::memory_order_acquire);
    if (stopping.load(std::memory_order_relaxed))
      return;
    if (untakenOf(seen) != 0) {
      work(seen, thread);
      spinner = Spinner();
    } else if (!spinner.spin(busy.load(std::memory_order_relaxed) ? busySpin : idleSpin)) {
      sleep(epochOf(seen));
      spinner = Spinner();
    }
  }
}

} // namespace moert
