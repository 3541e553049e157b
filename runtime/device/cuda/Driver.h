// NVIDIA's driver library, opened when it is first asked for. A machine without it lacks nothing
// but its GPUs.
#ifndef MOERT_DEVICE_CUDA_DRIVER_H
#define MOERT_DEVICE_CUDA_DRIVER_H

#include "runtime/base/Status.h"
#include "runtime/device/cuda/DriverTypes.h"

#include <cstdint>
#include <string>
#include <vector>

namespace moert {
struct EncodedTensorMap;
}

namespace moert::cuda {

// Functions of the driver that every version since 11.4 has, and the type of each.
#define MOERT_CUDA_FUNCTIONS(FUNCTION)                                                             \
  FUNCTION(cuInit, (unsigned))                                                                     \
  FUNCTION(cuDriverGetVersion, (int *))                                                            \
  FUNCTION(cuGetErrorName, (CUresult, const char **))                                              \
  FUNCTION(cuGetErrorString, (CUresult, const char **))                                            \
  FUNCTION(cuDeviceGetCount, (int *))                                                              \
  FUNCTION(cuDeviceGet, (CUdevice *, int))                                                         \
  FUNCTION(cuDeviceGetName, (char *, int, CUdevice))                                               \
  FUNCTION(cuDeviceGetAttribute, (int *, int, CUdevice))                                           \
  FUNCTION(cuDeviceTotalMem_v2, (std::size_t *, CUdevice))                                         \
  FUNCTION(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                      \
  FUNCTION(cuDevicePrimaryCtxRelease_v2, (CUdevice))                                               \
  FUNCTION(cuCtxPushCurrent_v2, (CUcontext))                                                       \
  FUNCTION(cuCtxPopCurrent_v2, (CUcontext *))                                                      \
  FUNCTION(cuMemGetInfo_v2, (std::size_t *, std::size_t *))                                        \
  FUNCTION(cuMemAlloc_v2, (CUdeviceptr *, std::size_t))                                            \
  FUNCTION(cuMemFree_v2, (CUdeviceptr))                                                            \
  FUNCTION(cuMemHostAlloc, (void **, std::size_t, unsigned))                                       \
  FUNCTION(cuMemFreeHost, (void *))                                                                \
  FUNCTION(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, std::size_t, CUstream))               \
  FUNCTION(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, std::size_t, CUstream))                     \
  FUNCTION(cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, std::size_t, CUstream))                \
  FUNCTION(cuMemsetD8Async, (CUdeviceptr, unsigned char, std::size_t, CUstream))                   \
  FUNCTION(cuStreamCreate, (CUstream *, unsigned))                                                 \
  FUNCTION(cuStreamDestroy_v2, (CUstream))                                                         \
  FUNCTION(cuStreamSynchronize, (CUstream))                                                        \
  FUNCTION(cuStreamWaitEvent, (CUstream, CUevent, unsigned))                                       \
  FUNCTION(cuStreamBeginCapture_v2, (CUstream, int))                                               \
  FUNCTION(cuStreamEndCapture, (CUstream, CUgraph *))                                              \
  FUNCTION(cuEventCreate, (CUevent *, unsigned))                                                   \
  FUNCTION(cuEventDestroy_v2, (CUevent))                                                           \
  FUNCTION(cuEventRecord, (CUevent, CUstream))                                                     \
  FUNCTION(cuEventSynchronize, (CUevent))                                                          \
  FUNCTION(cuEventElapsedTime, (float *, CUevent, CUevent))                                        \
  FUNCTION(cuModuleLoadDataEx, (CUmodule *, const void *, unsigned, int *, void **))               \
  FUNCTION(cuModuleUnload, (CUmodule))                                                             \
  FUNCTION(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                            \
  FUNCTION(cuFuncGetAttribute, (int *, int, CUfunction))                                           \
  FUNCTION(cuFuncSetAttribute, (CUfunction, int, int))                                             \
  FUNCTION(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,          \
                            unsigned, unsigned, CUstream, void **, void **))                       \
  FUNCTION(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))              \
  FUNCTION(cuGraphDestroy, (CUgraph))                                                              \
  FUNCTION(cuGraphExecDestroy, (CUgraphExec))                                                      \
  FUNCTION(cuGraphLaunch, (CUgraphExec, CUstream))

// Functions of later versions; null where the driver has none.
#define MOERT_CUDA_LATER_FUNCTIONS(FUNCTION)                                                       \
  FUNCTION(cuFuncGetParamInfo, (CUfunction, std::size_t, std::size_t *, std::size_t *))            \
  FUNCTION(cuLaunchKernelEx, (const CUlaunchConfig *, CUfunction, void **, void **))               \
  FUNCTION(cuTensorMapEncodeTiled,                                                                 \
           (EncodedTensorMap *, int, std::uint32_t, void *, const std::uint64_t *,                 \
            const std::uint64_t *, const std::uint32_t *, const std::uint32_t *, int, int, int,    \
            int))

struct DeviceInfo {
  int index = 0;
  std::string name;
  int major = 0, minor = 0; // compute capability
  std::uint64_t bytes = 0;  // of memory
};

class Driver {
public:
  // The oldest driver that has all of MOERT_CUDA_FUNCTIONS, as cuDriverGetVersion counts.
  static constexpr int oldestVersion = 11040;

  // Opens and initialises the library once for the process; the same error again where that failed.
  static Result<const Driver *> get();

  int version() const { return foundVersion; } // 13000 for CUDA 13.0
  const std::vector<DeviceInfo> &devices() const { return found; }

  // An error of the library in words: "cuMemAlloc: CUDA_ERROR_... (...)".
  Status toStatus(CUresult result, const std::string &what) const;

#define MOERT_CUDA_DECLARE(name, parameters) CUresult(*name) parameters = nullptr;
  MOERT_CUDA_FUNCTIONS(MOERT_CUDA_DECLARE)
  MOERT_CUDA_LATER_FUNCTIONS(MOERT_CUDA_DECLARE)
#undef MOERT_CUDA_DECLARE

private:
  Driver() = default;
  static Result<const Driver *> open();
  Status findDevices();
  int foundVersion = 0;
  std::vector<DeviceInfo> found;
};

// "12.4" for 12040.
std::string versionToString(int version);

} // namespace moert::cuda

// Leaves the function with an error when a call of the driver fails. `driver` is a Driver.
#define MOERT_CUDA_RETURN_IF_ERROR(driver, call)                                                   \
  do {                                                                                             \
    if (::moert::cuda::CUresult moertResult = (driver).call;                                       \
        moertResult != ::moert::cuda::CUDA_SUCCESS)                                                \
      return (driver).toStatus(moertResult, #call);                                                \
  } while (false)

#endif
