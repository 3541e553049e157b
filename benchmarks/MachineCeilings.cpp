#include "MachineCeilings.h"

#include <algorithm>
#include <cstring>
#include <ctime>

using namespace moec_bench;

static clockid_t measuringClock = CLOCK_MONOTONIC;

void moec_bench::useProcessorTime() { measuringClock = CLOCK_THREAD_CPUTIME_ID; }

static double getSeconds(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

double moec_bench::measureSeconds(const std::function<void()> &body, double seconds) {
  auto measureBatch = [&](int calls) {
    double start = getSeconds(measuringClock);
    for (int i = 0; i < calls; ++i)
      body();
    return (getSeconds(measuringClock) - start) / calls;
  };
  measureBatch(1);
  double best = measureBatch(1);
  // Batches that are long beside the clock's resolution and short beside the time between
  // interruptions.
  int calls = std::max(1, static_cast<int>(5e-4 / std::max(best, 1e-9)));
  for (double start = getSeconds(CLOCK_MONOTONIC); getSeconds(CLOCK_MONOTONIC) - start < seconds;)
    best = std::min(best, measureBatch(calls));
  return best;
}

namespace {

typedef float Vector256 __attribute__((vector_size(32)));
typedef float Vector512 __attribute__((vector_size(64)));

constexpr int64_t rounds = 1 << 14;
constexpr int chains = 12;

// Twelve independent sums hide the latency of the additions; named one by one they stay in
// registers.
#define MOEC_EACH_CHAIN(step)                                                                      \
  step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11)
#define MOEC_DECLARE(i) Vector sum##i = {};
#define MOEC_MULTIPLY_ADD(i) asm volatile("vfmadd231ps %1, %2, %0" : "+v"(sum##i) : "v"(a), "v"(b));

__attribute__((target("avx2,fma"))) void multiplyAdd256() {
  using Vector = Vector256;
  Vector a = {}, b = {};
  MOEC_EACH_CHAIN(MOEC_DECLARE)
  for (int64_t i = 0; i < rounds; ++i) {
    MOEC_EACH_CHAIN(MOEC_MULTIPLY_ADD)
  }
}

__attribute__((target("avx512f"))) void multiplyAdd512() {
  using Vector = Vector512;
  Vector a = {}, b = {};
  MOEC_EACH_CHAIN(MOEC_DECLARE)
  for (int64_t i = 0; i < rounds; ++i) {
    MOEC_EACH_CHAIN(MOEC_MULTIPLY_ADD)
  }
}

} // namespace

double moec_bench::measureMultiplyAddRate(moert::ThreadPool &pool) {
  bool wide = __builtin_cpu_supports("avx512f");
  moert::ThreadPool::Lease lease(pool);
  double seconds = measureSeconds([&] {
    lease.forEach(pool.size() * 4, [&](uint32_t) { wide ? multiplyAdd512() : multiplyAdd256(); });
  });
  return pool.size() * 4.0 * rounds * chains * 2 * (wide ? 16 : 8) / seconds;
}
