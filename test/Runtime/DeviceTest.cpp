#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/device/cpu/KernelLibrary.h"
#include "runtime/device/cpu/Memory.h"
#include "runtime/device/cpu/ThreadPool.h"
#include "test/Runtime/TestBundle.h"

#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include <sched.h>
#include <unistd.h>

using namespace moert;
using namespace moert::test;

TEST(CpuFeatures, AgreeWithLinux) {
  // Linux's names where they differ from LLVM's.
  const std::pair<const char *, const char *> names[] = {
      {"avx2", "avx2"},         {"fma", "fma"},
      {"avx512f", "avx512f"},   {"bmi2", "bmi2"},
      {"avx512bw", "avx512bw"}, {"avx512_bf16", "avx512bf16"},
      {"amx_tile", "amx-tile"}, {"amx_bf16", "amx-bf16"},
      {"f16c", "f16c"},         {"avx512_vnni", "avx512vnni"},
      {"movbe", "movbe"},       {"sse4_2", "sse4.2"}};
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  std::set<std::string> flags;
  while (std::getline(file, line))
    if (line.rfind("flags", 0) == 0) {
      std::istringstream words(line);
      for (std::string word; words >> word;)
        flags.insert(word);
      break;
    }
  ASSERT_FALSE(flags.empty());
  for (auto [linux, llvm] : names)
    EXPECT_EQ(hasCpuFeature(llvm), flags.count(linux) != 0) << llvm;
  EXPECT_TRUE(hasCpuFeature("sse2"));
  EXPECT_TRUE(hasCpuFeature("64bit"));
  EXPECT_FALSE(hasCpuFeature("imaginary-feature"));
}

TEST(CpuFeatures, UsableCoresFollowTheAffinity) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  EXPECT_LE(usableCores(), static_cast<unsigned>(CPU_COUNT(&before)));
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usableCores(), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(Memory, GrowsKeepingContentAndZeroes) {
  auto memory = AlignedMemory::allocate(100, "a test");
  ASSERT_TRUE(isOk(memory));
  for (std::uint64_t size : {100, 1000, 900000, 3 << 20, 9 << 20}) {
    std::uint64_t before = memory->size();
    ASSERT_TRUE(isOk(memory->grow(size, "a test")));
    EXPECT_EQ(memory->size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % memoryAlignment, 0u);
    for (std::uint64_t i = before == size ? 0 : before; i < size; ++i)
      ASSERT_EQ(memory->data()[i], std::byte(0)) << i;
    std::memset(memory->data() + (before == size ? 0 : before), 7,
                size - (before == size ? 0 : before));
    ASSERT_EQ(memory->data()[0], std::byte(7));
    ASSERT_EQ(memory->data()[size - 1], std::byte(7));
  }
  EXPECT_TRUE(
      fails(memory->grow(UINT64_MAX, "a huge test"), ErrorCode::OutOfMemory, "a huge test"));
  EXPECT_EQ(memory->size(), std::uint64_t(9) << 20);
  EXPECT_TRUE(isOk(AlignedMemory::allocate(0, "nothing")));
}

TEST(KernelLibrary, FindsKernelsAndRefusesWhatItDoesNotKnow) {
  std::string code = readFile(testKernelsPath());
  auto library = KernelLibrary::load(code, "kernels.so");
  ASSERT_TRUE(isOk(library));
  EXPECT_NE((*library)->find("append"), nullptr);
  EXPECT_NE((*library)->find("recur"), nullptr);
  EXPECT_EQ((*library)->find("zzz"), nullptr);
  EXPECT_EQ((*library)->find(""), nullptr);
  // Two at once, each its own.
  auto second = KernelLibrary::load(code, "kernels.so");
  ASSERT_TRUE(isOk(second));
  EXPECT_NE((*second)->find("append"), (*library)->find("append"));
  EXPECT_TRUE(fails(KernelLibrary::load("no elf", "x.so").status(), ErrorCode::InvalidData,
                    "x.so: error: the code cannot be loaded"));
  // Cut short: the loader itself would die of it.
  for (std::size_t length = 0; length < 2500; length += 97)
    EXPECT_FALSE(KernelLibrary::load(code.substr(0, length), "x.so").isOk()) << length;
}

namespace {

struct Count {
  std::vector<std::atomic<unsigned>> hits;
  explicit Count(std::size_t size) : hits(size) {}
};

void countOne(const moert_kernel_arguments *arguments, void *scratch, std::int64_t workgroup) {
  auto *count = static_cast<Count *>(arguments->buffers[0]);
  count->hits[static_cast<std::size_t>(workgroup)].fetch_add(1, std::memory_order_relaxed);
  // Scratch belongs to this thread alone.
  auto *mine = static_cast<volatile std::int64_t *>(scratch);
  mine[0] = workgroup;
  for (int i = 0; i < 50; ++i)
    if (mine[0] != workgroup)
      count->hits[0].fetch_add(1000, std::memory_order_relaxed);
}

} // namespace

TEST(ThreadPool, EveryWorkgroupRunsExactlyOnce) {
  for (unsigned threads : {1u, 2u, 3u, 8u}) {
    auto pool = ThreadPool::create(threads);
    ASSERT_TRUE(isOk(pool));
    EXPECT_EQ((*pool)->size(), threads);
    std::mt19937 random(threads);
    for (int round = 0; round < 300; ++round) {
      ThreadPool::Lease lease(**pool);
      ASSERT_TRUE(isOk(lease.reserveScratch(64)));
      for (int launch = 0; launch < 5; ++launch) {
        auto workgroups = static_cast<std::uint32_t>(random() % (launch == 4 ? 2000 : 9));
        Count count(workgroups + 1);
        void *buffer = &count;
        moert_kernel_arguments arguments = {&buffer, nullptr};
        lease.launch(countOne, &arguments, workgroups);
        for (std::uint32_t i = 0; i < workgroups; ++i)
          ASSERT_EQ(count.hits[i].load(), 1u)
              << threads << " threads, workgroup " << i << " of " << workgroups;
      }
      if (round % 100 == 99) // let the workers fall asleep
        usleep(20000);
    }
  }
}

TEST(ThreadPool, LeasesTakeTurns) {
  auto pool = ThreadPool::create(2);
  ASSERT_TRUE(isOk(pool));
  std::atomic<int> inside{0}, together{0}, sum{0};
  auto use = [&] {
    for (int i = 0; i < 200; ++i) {
      ThreadPool::Lease lease(**pool);
      if (inside.fetch_add(1) != 0)
        together.fetch_add(1);
      lease.forEach(7, [&](std::uint32_t index) { sum.fetch_add(static_cast<int>(index)); });
      inside.fetch_sub(1);
    }
  };
  std::thread other(use);
  use();
  other.join();
  EXPECT_EQ(together.load(), 0);
  EXPECT_EQ(sum.load(), 400 * 21);
}

TEST(ThreadPool, RefusesAbsurdNumbers) {
  EXPECT_TRUE(
      fails(ThreadPool::create(1000000).status(), ErrorCode::InvalidArgument, "at most 4096"));
  auto pool = ThreadPool::create(0);
  ASSERT_TRUE(isOk(pool));
  EXPECT_EQ((*pool)->size(), usableCores());
}
