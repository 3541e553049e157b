// The CPU as a device: plain memory, kernels of a shared object, workgroups spread over threads.
#ifndef MOERT_DEVICE_CPU_CPUDEVICE_H
#define MOERT_DEVICE_CPU_CPUDEVICE_H

#include "runtime/device/Device.h"
#include "runtime/device/cpu/ThreadPool.h"

namespace moert {

class CpuDevice final : public Device {
public:
  // `threads` as for ThreadPool::create.
  static Result<std::shared_ptr<Device>> create(unsigned threads);

  const std::string &name() const override { return displayName; }
  bool isHostAccessible() const override { return true; }
  unsigned threads() const override { return pool->size(); }
  MemoryInfo memoryInfo() const override;

  Result<std::unique_ptr<KernelSet>> load(const DeviceCode &code) override;

  Result<DeviceMemory> allocate(std::uint64_t bytes, std::string_view what) override;
  Status grow(DeviceMemory &memory, std::uint64_t bytes, std::string_view what) override;
  Result<DeviceMemory> allocateHost(std::uint64_t bytes, std::string_view what) override;

  Status upload(MemorySpan to, std::span<const std::byte> from) override;
  Status download(std::span<std::byte> to, MemorySpan from) override;
  Status copy(MemorySpan to, MemorySpan from) override;
  Status set(MemorySpan memory, std::byte value) override;
  Status synchronise() override { return {}; }
  Result<std::unique_ptr<Filler>> makeFiller() override;

  Status encode(const TensorMapShape &shape, EncodedTensorMap &result) override;

  Status run(const CommandList &list) override;
  Status runProfiled(const CommandList &list, std::span<CommandTime> times) override;
  Result<double> runTimed(const CommandList &list) override;
  Result<std::unique_ptr<Recording>> record(const CommandList &list) override;
  Result<bool> replay(const Recording &recording) override;

private:
  explicit CpuDevice(std::unique_ptr<ThreadPool> pool) : pool(std::move(pool)) {}

  std::string displayName = "cpu";
  std::unique_ptr<ThreadPool> pool;
};

} // namespace moert

#endif
