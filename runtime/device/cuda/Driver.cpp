#include "runtime/device/cuda/Driver.h"

#include <dlfcn.h>

namespace moert::cuda {

namespace {

constexpr const char *libraryName = "libcuda.so.1";

// "cuMemAlloc" of "cuMemAlloc_v2(&address, bytes)": what people look up.
std::string functionName(const std::string &call) {
  std::string name = call.substr(0, call.find('('));
  std::size_t version = name.rfind("_v");
  return version == std::string::npos ? name : name.substr(0, version);
}

} // namespace

std::string versionToString(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Status Driver::toStatus(CUresult result, const std::string &what) const {
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
    name = "an unknown error";
  if (cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
    text = "no text";
  return {result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::OutOfMemory : ErrorCode::InputOutput,
          functionName(what) + " failed: " + name + " (" + std::to_string(result) + ", " + text +
              ")"};
}

Result<const Driver *> Driver::get() {
  static const Result<const Driver *> opened = open();
  return opened;
}

Result<const Driver *> Driver::open() {
  // Stays open and alive for the rest of the process, as the library itself wants it.
  void *library = dlopen(libraryName, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    return Status(ErrorCode::Unsupported,
                  std::string("NVIDIA's driver library cannot be opened: ") +
                      (reason ? reason : libraryName),
                  {}, "install NVIDIA's driver, or run on the CPU (--device cpu)");
  }
  static Driver driver;
  std::string missing;
#define MOERT_CUDA_LOOK_UP(name, parameters)                                                       \
  driver.name = reinterpret_cast<CUresult(*) parameters>(dlsym(library, #name));                   \
  if (!driver.name)                                                                                \
    missing += std::string(missing.empty() ? "" : ", ") + #name;
  MOERT_CUDA_FUNCTIONS(MOERT_CUDA_LOOK_UP)
#undef MOERT_CUDA_LOOK_UP
#define MOERT_CUDA_LOOK_UP(name, parameters)                                                       \
  driver.name = reinterpret_cast<CUresult(*) parameters>(dlsym(library, #name));
  MOERT_CUDA_LATER_FUNCTIONS(MOERT_CUDA_LOOK_UP)
#undef MOERT_CUDA_LOOK_UP

  // The version first: a driver that is too old shall say so, not which function it lacks.
  if (driver.cuDriverGetVersion &&
      driver.cuDriverGetVersion(&driver.foundVersion) == CUDA_SUCCESS &&
      driver.foundVersion < oldestVersion)
    return Status(ErrorCode::Unsupported,
                  "NVIDIA's driver is too old: it is for CUDA " +
                      versionToString(driver.foundVersion) + ", needed is " +
                      versionToString(oldestVersion) + " or later",
                  libraryName, "install a newer driver");
  if (!missing.empty())
    return Status(ErrorCode::Unsupported, "NVIDIA's driver library lacks " + missing, libraryName,
                  "install a newer driver");
  if (CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) {
    if (result == CUDA_ERROR_NO_DEVICE)
      return Status(ErrorCode::Unsupported, "NVIDIA's driver finds no GPU", libraryName,
                    "check with nvidia-smi; CUDA_VISIBLE_DEVICES may hide GPUs");
    Status status = driver.toStatus(result, "cuInit");
    return Status(ErrorCode::Unsupported, status.message(), libraryName,
                  "check the driver with nvidia-smi");
  }
  MOERT_RETURN_IF_ERROR(driver.findDevices());
  return &driver;
}

Status Driver::findDevices() {
  int count = 0;
  MOERT_CUDA_RETURN_IF_ERROR(*this, cuDeviceGetCount(&count));
  for (int i = 0; i < count; ++i) {
    DeviceInfo info;
    info.index = i;
    CUdevice device = 0;
    char name[256] = {};
    std::size_t bytes = 0;
    MOERT_CUDA_RETURN_IF_ERROR(*this, cuDeviceGet(&device, i));
    MOERT_CUDA_RETURN_IF_ERROR(*this, cuDeviceGetName(name, sizeof name - 1, device));
    MOERT_CUDA_RETURN_IF_ERROR(*this,
                               cuDeviceGetAttribute(&info.major, deviceCapabilityMajor, device));
    MOERT_CUDA_RETURN_IF_ERROR(*this,
                               cuDeviceGetAttribute(&info.minor, deviceCapabilityMinor, device));
    MOERT_CUDA_RETURN_IF_ERROR(*this, cuDeviceTotalMem_v2(&bytes, device));
    info.name = name;
    info.bytes = bytes;
    found.push_back(std::move(info));
  }
  if (found.empty())
    return {ErrorCode::Unsupported, "NVIDIA's driver finds no GPU", libraryName,
            "check with nvidia-smi; CUDA_VISIBLE_DEVICES may hide GPUs"};
  return {};
}

} // namespace moert::cuda
