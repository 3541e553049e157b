#include "runtime/device/cuda/CudaContext.h"

namespace moert::cuda {

namespace {

class GpuMemory final : public DeviceMemory::Owner {
public:
  GpuMemory(std::shared_ptr<const Context> context, CUdeviceptr address)
      : context(std::move(context)), address(address) {}
  ~GpuMemory() override {
    Context::Scope scope(*context);
    // What is queued may still use it. A failure shows in the next call that returns one.
    (void)context->driver.cuStreamSynchronize(context->filling);
    (void)context->driver.cuStreamSynchronize(context->compute);
    (void)context->driver.cuMemFree_v2(address);
  }

private:
  std::shared_ptr<const Context> context;
  CUdeviceptr address;
};

class PinnedMemory final : public DeviceMemory::Owner {
public:
  PinnedMemory(std::shared_ptr<const Context> context, void *address)
      : context(std::move(context)), address(address) {}
  ~PinnedMemory() override {
    Context::Scope scope(*context);
    (void)context->driver.cuStreamSynchronize(context->filling);
    (void)context->driver.cuStreamSynchronize(context->compute);
    (void)context->driver.cuMemFreeHost(address);
  }

private:
  std::shared_ptr<const Context> context;
  void *address;
};

} // namespace

Result<std::shared_ptr<Context>> Context::create(int index) {
  MOERT_ASSIGN_OR_RETURN(const Driver *driver, Driver::get());
  if (index < 0 || static_cast<std::size_t>(index) >= driver->devices().size())
    return Status(ErrorCode::NotFound,
                  "there is no device cuda:" + std::to_string(index) + "; there are " +
                      std::to_string(driver->devices().size()) + ", counted from 0",
                  {}, "check with nvidia-smi; CUDA_VISIBLE_DEVICES may hide GPUs");
  std::shared_ptr<Context> context(
      new Context(*driver, driver->devices()[static_cast<std::size_t>(index)]));
  if (Status status = context->open(); !status.isOk())
    return std::move(status).in(context->name());
  return context;
}

Status Context::open() {
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuDeviceGet(&device, info.index));
  MOERT_CUDA_RETURN_IF_ERROR(driver,
                             cuDeviceGetAttribute(&maximumThreads, deviceMaximumThreads, device));
  MOERT_CUDA_RETURN_IF_ERROR(
      driver, cuDeviceGetAttribute(&maximumSharedBytes, deviceSharedBytesOptIn, device));
  if (maximumSharedBytes == 0) // devices from before there was a choice
    MOERT_CUDA_RETURN_IF_ERROR(
        driver, cuDeviceGetAttribute(&maximumSharedBytes, deviceSharedBytes, device));
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuDevicePrimaryCtxRetain(&handle, device));
  Scope scope(*this);
  for (CUstream *stream : {&compute, &filling, &recording})
    MOERT_CUDA_RETURN_IF_ERROR(driver, cuStreamCreate(stream, streamNonBlocking));
  return {};
}

Context::~Context() {
  if (!handle)
    return;
  {
    Scope scope(*this);
    for (CUstream stream : {compute, filling, recording})
      if (stream)
        (void)driver.cuStreamDestroy_v2(stream);
  }
  (void)driver.cuDevicePrimaryCtxRelease_v2(device);
}

MemoryInfo Context::memoryInfo() const {
  Scope scope(*this);
  std::size_t free = 0, total = 0;
  if (driver.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS)
    return {};
  return {free, total};
}

Result<DeviceMemory> Context::allocate(std::uint64_t bytes, std::string_view what) {
  Scope scope(*this);
  CUdeviceptr address = 0;
  CUresult result = driver.cuMemAlloc_v2(&address, bytes == 0 ? 1 : bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    MemoryInfo memory = memoryInfo();
    return Status(ErrorCode::OutOfMemory,
                  "cannot get " + std::to_string(bytes) + " bytes of memory for " +
                      std::string(what) + ": " + std::to_string(memory.free) + " of " +
                      std::to_string(memory.total) + " are free",
                  name(), "use a GPU with more memory, or fewer and shorter sequences");
  }
  if (result != CUDA_SUCCESS)
    return driver.toStatus(result, "cuMemAlloc").in(name());
  return DeviceMemory(reinterpret_cast<std::byte *>(address), bytes,
                      std::make_unique<GpuMemory>(shared_from_this(), address));
}

Result<DeviceMemory> Context::allocateHost(std::uint64_t bytes, std::string_view what) {
  Scope scope(*this);
  void *address = nullptr;
  CUresult result = driver.cuMemHostAlloc(&address, bytes == 0 ? 1 : bytes, hostAllocPortable);
  if (result != CUDA_SUCCESS) {
    Status status = driver.toStatus(result, "cuMemHostAlloc");
    return Status(status.code(),
                  "cannot get " + std::to_string(bytes) + " bytes of the host's memory for " +
                      std::string(what) + ": " + status.message(),
                  name());
  }
  return DeviceMemory(static_cast<std::byte *>(address), bytes,
                      std::make_unique<PinnedMemory>(shared_from_this(), address));
}

} // namespace moert::cuda
