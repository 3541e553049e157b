// One GPU in use: its primary context, its streams, its memory. Shared by everything that holds
// memory or code of it.
#ifndef MOERT_DEVICE_CUDA_CUDACONTEXT_H
#define MOERT_DEVICE_CUDA_CUDACONTEXT_H

#include "runtime/device/Device.h"
#include "runtime/device/cuda/Driver.h"

#include <memory>

namespace moert::cuda {

class Context : public std::enable_shared_from_this<Context> {
public:
  static Result<std::shared_ptr<Context>> create(int index);
  ~Context();
  Context(const Context &) = delete;

  // Makes the context the calling thread's own for a while. A process may use several devices, and
  // the caller may have a context of its own.
  class Scope {
  public:
    explicit Scope(const Context &context)
        : driver(context.driver),
          pushed(driver.cuCtxPushCurrent_v2(context.handle) == CUDA_SUCCESS) {}
    ~Scope() {
      CUcontext previous = nullptr;
      if (pushed)
        (void)driver.cuCtxPopCurrent_v2(&previous);
    }
    Scope(const Scope &) = delete;

  private:
    const Driver &driver;
    bool pushed;
  };

  const std::string &name() const { return displayName; } // "cuda:0"
  MemoryInfo memoryInfo() const;
  Result<DeviceMemory> allocate(std::uint64_t bytes, std::string_view what);
  Result<DeviceMemory> allocateHost(std::uint64_t bytes, std::string_view what);

  const Driver &driver;
  const DeviceInfo info;
  int maximumThreads = 0;
  int maximumSharedBytes = 0;   // of a block that asks for it
  CUstream compute = nullptr;   // everything runs here in order, but
  CUstream filling = nullptr;   // weights on their way to the device, and
  CUstream recording = nullptr; // what is only recorded

private:
  Context(const Driver &driver, const DeviceInfo &info)
      : driver(driver), info(info), displayName("cuda:" + std::to_string(info.index)) {}
  Status open();

  std::string displayName;
  CUdevice device = 0;
  CUcontext handle = nullptr;
};

inline CUdeviceptr toPointer(const std::byte *address) {
  return reinterpret_cast<CUdeviceptr>(address);
}

} // namespace moert::cuda

#endif
