// The few types and numbers of NVIDIA's driver interface that the runtime uses, as its
// documentation defines them: building needs no toolkit. Names are the driver's own, in a namespace
// of ours.
#ifndef MOERT_DEVICE_CUDA_DRIVERTYPES_H
#define MOERT_DEVICE_CUDA_DRIVERTYPES_H

#include <cstddef>
#include <cstdint>

namespace moert::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;
using CUgraph = struct CUgraph_st *;
using CUgraphExec = struct CUgraphExec_st *;

// Results that are told apart; cuGetErrorName knows the others.
inline constexpr CUresult CUDA_SUCCESS = 0;
inline constexpr CUresult CUDA_ERROR_INVALID_VALUE = 1;
inline constexpr CUresult CUDA_ERROR_OUT_OF_MEMORY = 2;
inline constexpr CUresult CUDA_ERROR_NO_DEVICE = 100;
inline constexpr CUresult CUDA_ERROR_INVALID_IMAGE = 200;
inline constexpr CUresult CUDA_ERROR_NO_BINARY_FOR_GPU = 209;
inline constexpr CUresult CUDA_ERROR_INVALID_PTX = 218;
inline constexpr CUresult CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222;
inline constexpr CUresult CUDA_ERROR_NOT_FOUND = 500;

// CUdevice_attribute
inline constexpr int deviceMaximumThreads = 1;
inline constexpr int deviceSharedBytes = 8;
inline constexpr int deviceCapabilityMajor = 75;
inline constexpr int deviceCapabilityMinor = 76;
inline constexpr int deviceSharedBytesOptIn = 97;

// CUfunction_attribute
inline constexpr int functionMaximumThreads = 0;
inline constexpr int functionSharedBytes = 1; // static ones
inline constexpr int functionMaximumDynamicShared = 8;

// CUjit_option
inline constexpr int jitErrorLog = 5;
inline constexpr int jitErrorLogBytes = 6;

inline constexpr unsigned streamNonBlocking = 1;
inline constexpr unsigned eventDefault = 0;
inline constexpr unsigned eventDisableTiming = 2;
inline constexpr unsigned hostAllocPortable = 1;
inline constexpr int captureThreadLocal = 1;

// CUlaunchAttributeID. A cluster size would be number 4.
inline constexpr int launchOverlap = 6;

struct CUlaunchAttribute {
  int id;
  int padding;
  union {
    char content[64];
    int flag;
  } value;
};
static_assert(sizeof(CUlaunchAttribute) == 72);

struct CUlaunchConfig {
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedBytes;
  CUstream stream;
  CUlaunchAttribute *attributes;
  unsigned attributeCount;
};
static_assert(sizeof(CUlaunchConfig) == 56);

// CUtensorMapDataType
inline constexpr int tensorU8 = 0, tensorU16 = 1, tensorU32 = 2, tensorI32 = 3, tensorU64 = 4,
                     tensorI64 = 5, tensorF16 = 6, tensorF32 = 7, tensorF64 = 8, tensorBF16 = 9;
// Interleave, L2 promotion, fill of what lies outside.
inline constexpr int tensorNoInterleave = 0, tensorPromote256 = 3, tensorFillZeros = 0;

} // namespace moert::cuda

#endif
