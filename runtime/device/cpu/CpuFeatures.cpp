#include "runtime/device/cpu/CpuFeatures.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>

#include <cpuid.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace moert {

namespace {

enum Register { EAX, EBX, ECX, EDX };
// Which register state the operating system must save for the feature to be usable.
enum class Needs { Nothing, Avx, Avx512, Amx };

struct Feature {
  std::uint32_t leaf, subleaf;
  Register reg;
  unsigned bit;
  std::string_view name;
  Needs needs = Needs::Nothing;
};

constexpr std::uint32_t extended = 0x80000000;

constexpr Feature features[] = {
    {1, 0, EDX, 0, "x87"},
    {1, 0, EDX, 8, "cx8"},
    {1, 0, EDX, 15, "cmov"},
    {1, 0, EDX, 23, "mmx"},
    {1, 0, EDX, 24, "fxsr"},
    {1, 0, EDX, 25, "sse"},
    {1, 0, EDX, 26, "sse2"},
    {1, 0, ECX, 0, "sse3"},
    {1, 0, ECX, 1, "pclmul"},
    {1, 0, ECX, 9, "ssse3"},
    {1, 0, ECX, 12, "fma", Needs::Avx},
    {1, 0, ECX, 13, "cx16"},
    {1, 0, ECX, 19, "sse4.1"},
    {1, 0, ECX, 20, "sse4.2"},
    {1, 0, ECX, 20, "crc32"},
    {1, 0, ECX, 22, "movbe"},
    {1, 0, ECX, 23, "popcnt"},
    {1, 0, ECX, 25, "aes"},
    {1, 0, ECX, 27, "xsave", Needs::Avx},
    {1, 0, ECX, 28, "avx", Needs::Avx},
    {1, 0, ECX, 29, "f16c", Needs::Avx},
    {1, 0, ECX, 30, "rdrnd"},
    {7, 0, EBX, 0, "fsgsbase"},
    {7, 0, EBX, 3, "bmi"},
    {7, 0, EBX, 5, "avx2", Needs::Avx},
    {7, 0, EBX, 8, "bmi2"},
    {7, 0, EBX, 10, "invpcid"},
    {7, 0, EBX, 11, "rtm"},
    {7, 0, EBX, 16, "avx512f", Needs::Avx512},
    {7, 0, EBX, 17, "avx512dq", Needs::Avx512},
    {7, 0, EBX, 18, "rdseed"},
    {7, 0, EBX, 19, "adx"},
    {7, 0, EBX, 21, "avx512ifma", Needs::Avx512},
    {7, 0, EBX, 23, "clflushopt"},
    {7, 0, EBX, 24, "clwb"},
    {7, 0, EBX, 28, "avx512cd", Needs::Avx512},
    {7, 0, EBX, 29, "sha"},
    {7, 0, EBX, 30, "avx512bw", Needs::Avx512},
    {7, 0, EBX, 31, "avx512vl", Needs::Avx512},
    {7, 0, ECX, 1, "avx512vbmi", Needs::Avx512},
    {7, 0, ECX, 4, "pku"},
    {7, 0, ECX, 5, "waitpkg"},
    {7, 0, ECX, 6, "avx512vbmi2", Needs::Avx512},
    {7, 0, ECX, 7, "shstk"},
    {7, 0, ECX, 8, "gfni"},
    {7, 0, ECX, 9, "vaes", Needs::Avx},
    {7, 0, ECX, 10, "vpclmulqdq", Needs::Avx},
    {7, 0, ECX, 11, "avx512vnni", Needs::Avx512},
    {7, 0, ECX, 12, "avx512bitalg", Needs::Avx512},
    {7, 0, ECX, 14, "avx512vpopcntdq", Needs::Avx512},
    {7, 0, ECX, 22, "rdpid"},
    {7, 0, ECX, 25, "cldemote"},
    {7, 0, ECX, 27, "movdiri"},
    {7, 0, ECX, 28, "movdir64b"},
    {7, 0, ECX, 29, "enqcmd"},
    {7, 0, EDX, 5, "uintr"},
    {7, 0, EDX, 8, "avx512vp2intersect", Needs::Avx512},
    {7, 0, EDX, 14, "serialize"},
    {7, 0, EDX, 16, "tsxldtrk"},
    {7, 0, EDX, 18, "pconfig"},
    {7, 0, EDX, 22, "amx-bf16", Needs::Amx},
    {7, 0, EDX, 23, "avx512fp16", Needs::Avx512},
    {7, 0, EDX, 24, "amx-tile", Needs::Amx},
    {7, 0, EDX, 25, "amx-int8", Needs::Amx},
    {7, 1, EAX, 0, "sha512", Needs::Avx},
    {7, 1, EAX, 1, "sm3", Needs::Avx},
    {7, 1, EAX, 2, "sm4", Needs::Avx},
    {7, 1, EAX, 4, "avxvnni", Needs::Avx},
    {7, 1, EAX, 5, "avx512bf16", Needs::Avx512},
    {7, 1, EAX, 7, "cmpccxadd"},
    {7, 1, EAX, 21, "amx-fp16", Needs::Amx},
    {7, 1, EAX, 22, "hreset"},
    {7, 1, EAX, 23, "avxifma", Needs::Avx},
    {7, 1, EDX, 4, "avxvnniint8", Needs::Avx},
    {7, 1, EDX, 5, "avxneconvert", Needs::Avx},
    {7, 1, EDX, 8, "amx-complex", Needs::Amx},
    {7, 1, EDX, 10, "avxvnniint16", Needs::Avx},
    {7, 1, EDX, 14, "prefetchi"},
    {0xd, 1, EAX, 0, "xsaveopt", Needs::Avx},
    {0xd, 1, EAX, 1, "xsavec", Needs::Avx},
    {0xd, 1, EAX, 3, "xsaves", Needs::Avx},
    {extended + 1, 0, ECX, 0, "sahf"},
    {extended + 1, 0, ECX, 5, "lzcnt"},
    {extended + 1, 0, ECX, 6, "sse4a"},
    {extended + 1, 0, ECX, 8, "prfchw"},
    {extended + 1, 0, ECX, 11, "xop", Needs::Avx},
    {extended + 1, 0, ECX, 16, "fma4", Needs::Avx},
    {extended + 1, 0, ECX, 21, "tbm"},
    {extended + 1, 0, ECX, 29, "mwaitx"},
    {extended + 1, 0, EDX, 29, "64bit"},
    {extended + 8, 0, EBX, 0, "clzero"},
    {extended + 8, 0, EBX, 4, "rdpru"},
    {extended + 8, 0, EBX, 9, "wbnoinvd"},
};

std::uint64_t readXcr0() {
  std::uint32_t low, high;
  // XGETBV, spelled out because the intrinsic needs a target attribute.
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t(high) << 32 | low;
}

bool requestTiles() {
  constexpr int requestPermission = 0x1023; // ARCH_REQ_XCOMP_PERM
  constexpr int tileData = 18;              // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

std::vector<std::string_view> detect() {
  std::uint32_t registers[4];
  std::uint64_t saved = 0;
  if (__get_cpuid(1, &registers[0], &registers[1], &registers[2], &registers[3]) &&
      (registers[2] >> 27 & 1)) // OSXSAVE
    saved = readXcr0();
  bool avx = (saved & 0x6) == 0x6;
  bool avx512 = avx && (saved & 0xe0) == 0xe0;
  bool amxSaved = (saved & 0x60000) == 0x60000;
  std::vector<std::string_view> found;
  for (const Feature &feature : features) {
    if (!__get_cpuid_count(feature.leaf, feature.subleaf, &registers[0], &registers[1],
                           &registers[2], &registers[3]) ||
        !(registers[feature.reg] >> feature.bit & 1))
      continue;
    if ((feature.needs == Needs::Avx && !avx) || (feature.needs == Needs::Avx512 && !avx512))
      continue;
    if (feature.needs == Needs::Amx) {
      static const bool granted = amxSaved && requestTiles();
      if (!granted)
        continue;
    }
    found.push_back(feature.name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// A small file's first line; empty when it cannot be read.
std::string firstLine(const std::string &path) {
  std::string line;
  if (std::FILE *file = std::fopen(path.c_str(), "re")) {
    char buffer[512];
    if (std::fgets(buffer, sizeof buffer, file))
      line = buffer;
    std::fclose(file);
  }
  while (!line.empty() && line.back() == '\n')
    line.pop_back();
  return line;
}

// CPUs' worth of time that the cgroup and its parents allow, rounded up; 0: no limit.
unsigned cgroupQuota() {
  std::string group = firstLine("/proc/self/cgroup");
  if (group.rfind("0::", 0) != 0)
    return 0;
  std::string path = group.substr(3);
  unsigned least = 0;
  while (true) {
    long long quota, period;
    std::string limit = firstLine("/sys/fs/cgroup" + path + "/cpu.max");
    if (std::sscanf(limit.c_str(), "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0) {
      auto cpus =
          static_cast<unsigned>(std::min<long long>((quota + period - 1) / period, 1 << 16));
      least = least == 0 ? cpus : std::min(least, cpus);
    }
    if (path.empty() || path == "/")
      return least;
    path.resize(path.rfind('/'));
  }
}

} // namespace

const std::vector<std::string_view> &cpuFeatures() {
  static const std::vector<std::string_view> found = detect();
  return found;
}

bool hasCpuFeature(std::string_view name) {
  return std::binary_search(cpuFeatures().begin(), cpuFeatures().end(), name);
}

unsigned usableCores() {
  // cpu_set_t ends at 1024 CPUs; larger machines need a larger set.
  constexpr int mostCpus = 1 << 14;
  cpu_set_t *set = CPU_ALLOC(mostCpus);
  std::size_t setBytes = CPU_ALLOC_SIZE(mostCpus);
  std::set<std::string> cores;
  if (set && sched_getaffinity(0, setBytes, set) == 0) {
    for (int cpu = 0; cpu < mostCpus; ++cpu) {
      if (!CPU_ISSET_S(static_cast<std::size_t>(cpu), setBytes, set))
        continue;
      std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
      std::string core = firstLine(topology + "core_id");
      // Without topology each logical CPU counts as a core.
      cores.insert(core.empty() ? "cpu" + std::to_string(cpu)
                                : firstLine(topology + "physical_package_id") + ":" + core);
    }
  }
  if (set)
    CPU_FREE(set);
  auto count = static_cast<unsigned>(cores.size());
  if (unsigned quota = cgroupQuota(); quota != 0)
    count = std::min(count, quota);
  return std::max(count, 1u);
}

} // namespace moert
