#include "runtime/device/cuda/CudaDevice.h"

#include "runtime/device/cuda/CudaFiller.h"
#include "runtime/device/cuda/CudaKernels.h"

#include <cassert>
#include <cstdlib>

namespace moert::cuda {

namespace {

constexpr const char *waitVariable = "MOERT_CUDA_SYNCHRONISE";

// The driver's number of an element type in a tensor map; -1: it has none.
int tensorType(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return tensorF32;
  case ElementType::F16:
    return tensorF16;
  case ElementType::BF16:
    return tensorBF16;
  case ElementType::F64:
    return tensorF64;
  case ElementType::I16:
  case ElementType::U16:
    return tensorU16;
  case ElementType::I32:
    return tensorI32;
  case ElementType::U32:
    return tensorU32;
  case ElementType::I64:
    return tensorI64;
  case ElementType::U64:
    return tensorU64;
  default:
    return storageBits(type) == 8 ? tensorU8 : -1;
  }
}

} // namespace

Fit findDevice(const Needs &needs, int index) {
  Result<const Driver *> driver = Driver::get();
  if (!driver.isOk())
    return {-1, "a working driver of NVIDIA (" + driver.status().message() + ")"};
  if (needs.driverVersion > (*driver)->version())
    return {-1, "a driver for CUDA " + versionToString(needs.driverVersion) +
                    " or later; this one is for " + versionToString((*driver)->version())};
  const std::vector<DeviceInfo> &devices = (*driver)->devices();
  if (index >= 0 && static_cast<std::size_t>(index) >= devices.size())
    return {-1, "a device cuda:" + std::to_string(index) + "; there are " +
                    std::to_string(devices.size())};
  std::string found;
  for (const DeviceInfo &info : devices) {
    if (index >= 0 && info.index != index)
      continue;
    auto capability = std::pair(info.major, info.minor);
    auto wanted = std::pair(static_cast<int>(needs.major), static_cast<int>(needs.minor));
    if (needs.exact ? capability == wanted : capability >= wanted)
      return {info.index, {}};
    found += (found.empty() ? "" : ", ") + std::string("cuda:") + std::to_string(info.index) +
             " (" + info.name + ") has " + std::to_string(info.major) + "." +
             std::to_string(info.minor);
  }
  return {-1, "a GPU of compute capability " + std::to_string(needs.major) + "." +
                  std::to_string(needs.minor) + (needs.exact ? "" : " or later") + "; " + found};
}

Result<std::shared_ptr<Device>> CudaDevice::create(int index, unsigned threads) {
  MOERT_ASSIGN_OR_RETURN(std::shared_ptr<Context> context, Context::create(index));
  std::shared_ptr<CudaDevice> device(new CudaDevice(std::move(context)));
  MOERT_ASSIGN_OR_RETURN(device->pool, ThreadPool::create(threads));
  return std::shared_ptr<Device>(std::move(device));
}

CudaDevice::CudaDevice(std::shared_ptr<Context> context)
    : context(std::move(context)), driver(this->context->driver), waitForEach([] {
        const char *value = std::getenv(waitVariable);
        return value && *value && std::string_view(value) != "0";
      }()) {}

CudaDevice::~CudaDevice() {
  Context::Scope scope(*context);
  for (CUevent event : events)
    (void)driver.cuEventDestroy_v2(event);
}

Result<std::unique_ptr<KernelSet>> CudaDevice::load(const DeviceCode &code) {
  return Kernels::load(context, code);
}

Result<DeviceMemory> CudaDevice::allocate(std::uint64_t bytes, std::string_view what) {
  return context->allocate(bytes, what);
}

Result<DeviceMemory> CudaDevice::allocateHost(std::uint64_t bytes, std::string_view what) {
  return context->allocateHost(bytes, what);
}

Status CudaDevice::grow(DeviceMemory &memory, std::uint64_t bytes, std::string_view what) {
  if (memory.getOwner() && bytes <= memory.size())
    return {};
  MOERT_ASSIGN_OR_RETURN(DeviceMemory fresh, allocate(bytes, what));
  MOERT_RETURN_IF_ERROR(copy({fresh.data(), memory.size()}, memory.span()));
  MOERT_RETURN_IF_ERROR(set({fresh.data() + memory.size(), bytes - memory.size()}, std::byte(0)));
  memory = std::move(fresh);
  return {};
}

Status CudaDevice::upload(MemorySpan to, std::span<const std::byte> from) {
  assert(to.bytes == from.size());
  if (from.empty())
    return {};
  std::lock_guard lock(mutex);
  Context::Scope scope(*context);
  MOERT_CUDA_RETURN_IF_ERROR(
      driver, cuMemcpyHtoDAsync_v2(toPointer(to.data), from.data(), from.size(), context->compute));
  return wait();
}

Status CudaDevice::download(std::span<std::byte> to, MemorySpan from) {
  assert(to.size() == from.bytes);
  if (to.empty())
    return {};
  std::lock_guard lock(mutex);
  Context::Scope scope(*context);
  MOERT_CUDA_RETURN_IF_ERROR(
      driver, cuMemcpyDtoHAsync_v2(to.data(), toPointer(from.data), to.size(), context->compute));
  return wait();
}

Status CudaDevice::copy(MemorySpan to, MemorySpan from) {
  assert(to.bytes == from.bytes);
  if (from.bytes == 0)
    return {};
  std::lock_guard lock(mutex);
  Context::Scope scope(*context);
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuMemcpyDtoDAsync_v2(toPointer(to.data), toPointer(from.data),
                                                          from.bytes, context->compute));
  return {};
}

Status CudaDevice::set(MemorySpan memory, std::byte value) {
  if (memory.bytes == 0)
    return {};
  std::lock_guard lock(mutex);
  Context::Scope scope(*context);
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuMemsetD8Async(toPointer(memory.data),
                                                     static_cast<unsigned char>(value),
                                                     memory.bytes, context->compute));
  return {};
}

Status CudaDevice::synchronise() {
  Context::Scope scope(*context);
  return wait();
}

Status CudaDevice::wait() {
  CUresult result = driver.cuStreamSynchronize(context->compute);
  if (result == CUDA_SUCCESS)
    return {};
  Status status = driver.toStatus(result, "cuStreamSynchronize");
  return Status(status.code(), "a kernel or a copy failed: " + status.message(), name(),
                waitForEach ? "" : std::string("set ") + waitVariable + "=1 to learn which one");
}

Result<std::unique_ptr<Device::Filler>> CudaDevice::makeFiller() {
  return cuda::Filler::create(context, *pool);
}

Status CudaDevice::encode(const TensorMapShape &shape, EncodedTensorMap &result) {
  if (!driver.cuTensorMapEncodeTiled)
    return {ErrorCode::Unsupported, "tensor maps need a driver for CUDA 12.0 or later; this one is "
                                    "for " +
                                        versionToString(driver.version())};
  int type = tensorType(shape.type);
  if (type < 0)
    return {ErrorCode::Unsupported, "a tensor map cannot hold elements of type " +
                                        std::string(elementTypeName(shape.type))};
  static constexpr std::uint32_t elementStrides[TensorMapShape::highestRank] = {1, 1, 1, 1, 1};
  Context::Scope scope(*context);
  CUresult error = driver.cuTensorMapEncodeTiled(
      &result, type, shape.rank, shape.address, shape.sizes, shape.strideBytes, shape.box,
      elementStrides, tensorNoInterleave, static_cast<int>(shape.swizzle), tensorPromote256,
      tensorFillZeros);
  if (error != CUDA_SUCCESS)
    return driver.toStatus(error, "cuTensorMapEncodeTiled");
  return {};
}

} // namespace moert::cuda
