// A libcuda.so.1 that can do next to nothing: for tests of what the runtime says when NVIDIA's
// driver is of no use. FAKE_CUDA says what is wrong with it:
//   old       it is for CUDA 10.2
//   none      it finds no GPU
//   broken    it does not start
//   weak      its only GPU has compute capability 5.2
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

static int is(const char *what) {
  const char *problem = getenv("FAKE_CUDA");
  return problem && strcmp(problem, what) == 0;
}

EXPORTED int cuDriverGetVersion(int *version) {
  *version = is("old") ? 10020 : 12040;
  return 0;
}
EXPORTED int cuInit(unsigned flags) { return is("none") ? 100 : is("broken") ? 999 : 0; }
EXPORTED int cuGetErrorName(int error, const char **name) {
  *name = "CUDA_ERROR_OF_A_FAKE";
  return 0;
}
EXPORTED int cuGetErrorString(int error, const char **text) {
  *text = "nothing works";
  return 0;
}
EXPORTED int cuDeviceGetCount(int *count) {
  *count = 1;
  return 0;
}
EXPORTED int cuDeviceGet(int *device, int index) {
  *device = index;
  return 0;
}
EXPORTED int cuDeviceGetName(char *name, int length, int device) {
  strncpy(name, "Fake GPU", (size_t)length);
  return 0;
}
EXPORTED int cuDeviceGetAttribute(int *value, int attribute, int device) {
  *value = attribute == 75 ? (is("weak") ? 5 : 9) : attribute == 76 ? (is("weak") ? 2 : 0) : 1024;
  return 0;
}
EXPORTED int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  *bytes = 1 << 30;
  return 0;
}

// Everything else fails.
#define FAIL(name)                                                                                 \
  EXPORTED int name(void) { return 999; }
FAIL(cuDevicePrimaryCtxRetain)
FAIL(cuDevicePrimaryCtxRelease_v2)
FAIL(cuCtxPushCurrent_v2)
FAIL(cuCtxPopCurrent_v2)
FAIL(cuMemGetInfo_v2)
FAIL(cuMemAlloc_v2)
FAIL(cuMemFree_v2)
FAIL(cuMemHostAlloc)
FAIL(cuMemFreeHost)
FAIL(cuMemcpyHtoDAsync_v2)
FAIL(cuMemcpyDtoHAsync_v2)
FAIL(cuMemcpyDtoDAsync_v2)
FAIL(cuMemsetD8Async)
FAIL(cuStreamCreate)
FAIL(cuStreamDestroy_v2)
FAIL(cuStreamSynchronize)
FAIL(cuStreamWaitEvent)
FAIL(cuStreamBeginCapture_v2)
FAIL(cuStreamEndCapture)
FAIL(cuEventCreate)
FAIL(cuEventDestroy_v2)
FAIL(cuEventRecord)
FAIL(cuEventSynchronize)
FAIL(cuEventElapsedTime)
FAIL(cuModuleLoadDataEx)
FAIL(cuModuleUnload)
FAIL(cuModuleGetFunction)
FAIL(cuFuncGetAttribute)
FAIL(cuFuncSetAttribute)
FAIL(cuLaunchKernel)
FAIL(cuGraphInstantiateWithFlags)
FAIL(cuGraphDestroy)
FAIL(cuGraphExecDestroy)
FAIL(cuGraphLaunch)
