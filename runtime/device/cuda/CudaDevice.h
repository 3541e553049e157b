// An NVIDIA GPU as a device. Everything runs on one stream, in order; command lists can be recorded
// as CUDA graphs.
//
// A kernel's parameters: a 64-bit pointer for each binding; an i64 for each dimension; a 64-bit
// pointer to scratch space where the launch has some (for all its workgroups together); each tensor
// map, 128 bytes, by value. Grid (workgroups, 1, 1), block (threads, 1, 1).
#ifndef MOERT_DEVICE_CUDA_CUDADEVICE_H
#define MOERT_DEVICE_CUDA_CUDADEVICE_H

#include "runtime/device/cpu/ThreadPool.h"
#include "runtime/device/cuda/CudaContext.h"

#include <mutex>
#include <string>
#include <vector>

namespace moert::cuda {

// What code needs of a GPU.
struct Needs {
  std::uint32_t major = 0, minor = 0; // compute capability
  bool exact = false;                 // this one only, not the later ones
  int driverVersion = 0;              // as cuDriverGetVersion counts; 0: any
};

// The first device that satisfies `needs`, or -1 and what is missing. `index` looks at that device
// alone; -1 at all of them.
struct Fit {
  int index = -1;
  std::string missing;
};
Fit findDevice(const Needs &needs, int index);

class CudaDevice final : public Device {
public:
  // `threads` read weights; 0 as for ThreadPool::create.
  static Result<std::shared_ptr<Device>> create(int index, unsigned threads);
  ~CudaDevice() override;

  const std::string &name() const override { return context->name(); }
  bool isHostAccessible() const override { return false; }
  unsigned threads() const override { return pool->size(); }
  MemoryInfo memoryInfo() const override { return context->memoryInfo(); }

  Result<std::unique_ptr<KernelSet>> load(const DeviceCode &code) override;

  Result<DeviceMemory> allocate(std::uint64_t bytes, std::string_view what) override;
  Status grow(DeviceMemory &memory, std::uint64_t bytes, std::string_view what) override;
  Result<DeviceMemory> allocateHost(std::uint64_t bytes, std::string_view what) override;

  Status upload(MemorySpan to, std::span<const std::byte> from) override;
  Status download(std::span<std::byte> to, MemorySpan from) override;
  Status copy(MemorySpan to, MemorySpan from) override;
  Status set(MemorySpan memory, std::byte value) override;
  Status synchronise() override;
  Result<std::unique_ptr<Filler>> makeFiller() override;

  Status encode(const TensorMapShape &shape, EncodedTensorMap &result) override;

  Status run(const CommandList &list) override;
  Status runProfiled(const CommandList &list, std::span<CommandTime> times) override;
  Result<double> runTimed(const CommandList &list) override;
  Result<std::unique_ptr<Recording>> record(const CommandList &list) override;
  Result<bool> replay(const Recording &recording) override;

private:
  explicit CudaDevice(std::shared_ptr<Context> context);
  Status wait();
  Status reserveScratch(std::uint64_t bytes);
  Status reserveEvents(std::size_t count);
  // Gives the GPU work for as long as the host takes to enqueue so many commands.
  Status keepBusy(std::size_t commands);
  Status uploadInputs(const CommandList &list, CUstream stream);
  Status downloadOutputs(const CommandList &list, CUstream stream);
  Status enqueue(const CommandList &list, CUstream stream);
  Status enqueue(const ReadyCommand &command, CUstream stream);
  CUresult launch(const ReadyCommand &command, CUstream stream);

  const std::shared_ptr<Context> context;
  const Driver &driver;
  std::unique_ptr<ThreadPool> pool;
  const bool waitForEach; // MOERT_CUDA_SYNCHRONISE

  std::mutex mutex; // one thread at a time hands over work
  DeviceMemory scratch;
  DeviceMemory busyWork; // for keepBusy
  std::uint64_t scratchMoves = 0;
  std::vector<void *> parameters; // of the launch at hand
  std::vector<CUevent> events;
};

} // namespace moert::cuda

#endif
