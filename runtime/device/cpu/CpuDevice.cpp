#include "runtime/device/cpu/CpuDevice.h"

#include "runtime/device/cpu/KernelLibrary.h"
#include "runtime/device/cpu/Memory.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>

#include <sys/sysinfo.h>

namespace moert {

namespace {

class CpuMemory final : public DeviceMemory::Owner {
public:
  explicit CpuMemory(AlignedMemory memory) : memory(std::move(memory)) {}
  AlignedMemory memory;
};

class CpuKernels final : public KernelSet {
public:
  explicit CpuKernels(std::unique_ptr<KernelLibrary> library) : library(std::move(library)) {}

  Result<KernelHandle> find(std::string_view name, const LaunchShape &,
                            const KernelParameters &) override {
    if (moert_kernel_function function = library->find(name))
      return reinterpret_cast<KernelHandle>(function);
    return Status(ErrorCode::InvalidData, "the code has no kernel " + inQuotes(name));
  }

private:
  std::unique_ptr<KernelLibrary> library;
};

// Reads straight into place, in pieces, by all threads: one alone does not reach the speed of a
// fast disk or of the page cache.
class CpuFiller final : public Device::Filler {
public:
  explicit CpuFiller(ThreadPool &pool) : pool(pool) {}

  Status fill(MemorySpan to, const Device::PieceReader &read) override {
    constexpr std::uint64_t piece = std::uint64_t(4) << 20;
    std::span<std::byte> bytes(to.data, to.bytes);
    auto pieces = static_cast<std::uint32_t>((bytes.size() + piece - 1) / piece);
    std::vector<Status> results(pieces);
    ThreadPool::Lease lease(pool);
    lease.forEach(pieces, [&](std::uint32_t i) {
      std::uint64_t offset = i * piece;
      results[i] = read(offset, bytes.subspan(offset, std::min(piece, bytes.size() - offset)));
    });
    for (Status &result : results)
      MOERT_RETURN_IF_ERROR(std::move(result));
    return {};
  }

private:
  ThreadPool &pool;
};

void runOne(const ReadyCommand &each, ThreadPool::Lease &lease) {
  if (each.kernel)
    lease.launch(reinterpret_cast<moert_kernel_function>(const_cast<void *>(each.kernel)),
                 &each.arguments, each.workgroups);
  else
    std::memmove(each.arguments.buffers[1], each.arguments.buffers[0], each.bytes);
}

} // namespace

Result<std::shared_ptr<Device>> CpuDevice::create(unsigned threads) {
  MOERT_ASSIGN_OR_RETURN(std::unique_ptr<ThreadPool> pool, ThreadPool::create(threads));
  return std::shared_ptr<Device>(new CpuDevice(std::move(pool)));
}

MemoryInfo CpuDevice::memoryInfo() const {
  struct sysinfo info;
  if (sysinfo(&info) != 0)
    return {};
  return {std::uint64_t(info.freeram) * info.mem_unit,
          std::uint64_t(info.totalram) * info.mem_unit};
}

Result<std::unique_ptr<KernelSet>> CpuDevice::load(const DeviceCode &code) {
  MOERT_ASSIGN_OR_RETURN(auto library, KernelLibrary::load(code.code, code.name));
  return std::unique_ptr<KernelSet>(std::make_unique<CpuKernels>(std::move(library)));
}

Result<DeviceMemory> CpuDevice::allocate(std::uint64_t bytes, std::string_view what) {
  MOERT_ASSIGN_OR_RETURN(AlignedMemory memory, AlignedMemory::allocate(bytes, what));
  std::byte *address = memory.data();
  return DeviceMemory(address, bytes, std::make_unique<CpuMemory>(std::move(memory)));
}

Status CpuDevice::grow(DeviceMemory &memory, std::uint64_t bytes, std::string_view what) {
  if (!memory.getOwner()) {
    MOERT_ASSIGN_OR_RETURN(memory, allocate(bytes, what));
    return {};
  }
  // Every owner of this device's memory is one.
  AlignedMemory &plain = static_cast<CpuMemory *>(memory.getOwner())->memory;
  MOERT_RETURN_IF_ERROR(plain.grow(bytes, what));
  memory.moveTo(plain.data(), plain.size());
  return {};
}

Result<DeviceMemory> CpuDevice::allocateHost(std::uint64_t bytes, std::string_view what) {
  return allocate(bytes, what);
}

Status CpuDevice::upload(MemorySpan to, std::span<const std::byte> from) {
  assert(to.bytes == from.size());
  if (!from.empty())
    std::memcpy(to.data, from.data(), from.size());
  return {};
}

Status CpuDevice::download(std::span<std::byte> to, MemorySpan from) {
  assert(to.size() == from.bytes);
  if (!to.empty())
    std::memcpy(to.data(), from.data, to.size());
  return {};
}

Status CpuDevice::copy(MemorySpan to, MemorySpan from) {
  assert(to.bytes == from.bytes);
  if (from.bytes != 0)
    std::memcpy(to.data, from.data, from.bytes);
  return {};
}

Status CpuDevice::set(MemorySpan memory, std::byte value) {
  if (memory.bytes != 0)
    std::memset(memory.data, static_cast<int>(value), memory.bytes);
  return {};
}

Result<std::unique_ptr<Device::Filler>> CpuDevice::makeFiller() {
  return std::unique_ptr<Filler>(std::make_unique<CpuFiller>(*pool));
}

Status CpuDevice::encode(const TensorMapShape &, EncodedTensorMap &) {
  return {ErrorCode::Unsupported, "the CPU has no tensor maps"};
}

Status CpuDevice::run(const CommandList &list) {
  ThreadPool::Lease lease(*pool);
  MOERT_RETURN_IF_ERROR(lease.reserveScratch(list.scratchBytes));
  for (const ReadyCommand &each : list.commands)
    runOne(each, lease);
  return {};
}

Status CpuDevice::runProfiled(const CommandList &list, std::span<CommandTime> times) {
  using Clock = std::chrono::steady_clock;
  ThreadPool::Lease lease(*pool);
  MOERT_RETURN_IF_ERROR(lease.reserveScratch(list.scratchBytes));
  Clock::time_point start = Clock::now();
  double before = 0;
  for (std::size_t i = 0; i < list.commands.size(); ++i) {
    runOne(list.commands[i], lease);
    double now = std::chrono::duration<double>(Clock::now() - start).count();
    times[i] = {before, now - before};
    before = now;
  }
  return {};
}

Result<double> CpuDevice::runTimed(const CommandList &list) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  MOERT_RETURN_IF_ERROR(run(list));
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<std::unique_ptr<Device::Recording>> CpuDevice::record(const CommandList &) {
  return std::unique_ptr<Recording>();
}

Result<bool> CpuDevice::replay(const Recording &) { return false; }

} // namespace moert
