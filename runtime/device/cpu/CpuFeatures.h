// What this CPU and this operating system offer, under LLVM's names ("avx2", "avx512f",
// "amx-bf16").
#ifndef MOERT_DEVICE_CPU_CPUFEATURES_H
#define MOERT_DEVICE_CPU_CPUFEATURES_H

#include <string>
#include <string_view>
#include <vector>

namespace moert {

// Sorted. A feature whose registers the operating system does not save is not there. For AMX this
// asks Linux for the permission that tiles need, which then holds for all threads of the process.
// Detected once.
const std::vector<std::string_view> &cpuFeatures();
bool hasCpuFeature(std::string_view name);

// Logical CPUs that this process may run on, limited to one for each physical core and to the
// cgroup's CPU quota (rounded up): the default number of threads. At least 1.
unsigned usableCores();

} // namespace moert

#endif
