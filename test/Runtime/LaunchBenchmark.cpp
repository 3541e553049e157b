// How long a launch takes by itself: no test, for people who change the thread pool.
//   launch-benchmark [THREADS [DEVICE]]
#include "runtime/device/Device.h"
#include "runtime/device/cpu/ThreadPool.h"
#include "runtime/session/Session.h"
#include "test/Runtime/TestBundle.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static void nothing(const moert_kernel_arguments *, void *, std::int64_t) {}
static void aMicrosecond(const moert_kernel_arguments *, void *, std::int64_t) {
  auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(1);
  while (std::chrono::steady_clock::now() < end) {
  }
}

// How fast a device takes content that threads make up.
static bool measureFilling(moert::Device &device) {
  constexpr std::uint64_t bytes = std::uint64_t(1) << 30;
  auto memory = device.allocate(bytes, "a benchmark");
  auto filler = device.makeFiller();
  if (!memory.isOk() || !filler.isOk())
    return false;
  auto read = [](std::uint64_t offset, std::span<std::byte> piece) -> moert::Status {
    std::memset(piece.data(), static_cast<int>(offset >> 20), piece.size());
    return {};
  };
  for (const char *round : {"first", "second"}) {
    auto start = std::chrono::steady_clock::now();
    if (!(*filler)->fill(memory->span(), read).isOk() || !device.synchronise().isOk())
      return false;
    std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    std::printf("filling 1 GiB of %s, %s time: %.1f GB/s\n", device.name().c_str(), round,
                static_cast<double>(bytes) / time.count() / 1e9);
  }
  return true;
}

// A whole step of the test bundle: three launches that do next to nothing.
static bool measureSteps(unsigned threads, const char *device, bool captureGraphs) {
  moert::test::TemporaryFolder folder;
  moert::test::writeTestBundle(folder / "b", {.cuda = true});
  auto bundle = moert::Bundle::open(folder / "b");
  auto model = moert::Model::load(
      *bundle, {.threads = threads, .device = device, .captureGraphs = captureGraphs});
  if (!model.isOk()) {
    std::fprintf(stderr, "%s\n", model.status().toString().c_str());
    return false;
  }
  auto session = moert::Session::create(*model);
  std::vector<double> times;
  for (int round = 0; round < 50; ++round) {
    moert::Sequence sequence = *session->createSequence();
    for (std::int32_t token = 0; token < 30; ++token) {
      moert::StepPart part{sequence, {&token, 1}};
      auto start = std::chrono::steady_clock::now();
      if (!session->step({&part, 1}).isOk())
        return false;
      std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
      times.push_back(time.count());
    }
    (void)session->release(sequence);
  }
  std::sort(times.begin(), times.end());
  std::printf("a step of 1 token, 3 launches, %s graphs: best %.0f, median %.0f nanoseconds\n",
              captureGraphs ? "with" : "without", times.front(), times[times.size() / 2]);
  return !captureGraphs || measureFilling(*(*model)->device());
}

int main(int argc, char **argv) {
  auto threads = static_cast<unsigned>(argc > 1 ? std::atoi(argv[1]) : 0);
  auto pool = moert::ThreadPool::create(threads);
  if (!pool.isOk())
    return 1;
  std::printf("%u threads; nanoseconds a launch, best and median of 2000 programs of 50 launches\n",
              (*pool)->size());
  moert_kernel_arguments arguments = {};
  using Kernel = std::pair<const char *, moert_kernel_function>;
  for (auto [name, kernel] :
       {Kernel("empty kernels", nothing), Kernel("kernels of 1 microsecond", aMicrosecond)})
    for (std::uint32_t workgroups : {1, 2, 8, 64}) {
      std::vector<double> times;
      for (int round = 0; round < 2000; ++round) {
        moert::ThreadPool::Lease lease(**pool);
        auto start = std::chrono::steady_clock::now();
        for (int launch = 0; launch < 50; ++launch)
          lease.launch(kernel, &arguments, workgroups);
        std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
        times.push_back(time.count() / 50);
      }
      std::sort(times.begin(), times.end());
      std::printf("%-26s %3u workgroups: %7.0f %7.0f\n", name, workgroups, times.front(),
                  times[times.size() / 2]);
    }
  for (bool captureGraphs : {false, true})
    if (!measureSteps(threads, argc > 2 ? argv[2] : "cpu", captureGraphs))
      return 1;
  return 0;
}
