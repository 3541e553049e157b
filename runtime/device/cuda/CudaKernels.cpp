#include "runtime/device/cuda/CudaKernels.h"

#include "runtime/device/cuda/Cubin.h"

#include <algorithm>
#include <cstring>

namespace moert::cuda {

// A kernel may have this much shared memory without asking, its own and dynamic together.
static constexpr std::uint32_t sharedWithoutAsking = 48 << 10;

CUresult Kernels::loadModule(const std::string &image, std::string &log) {
  log.assign(8192, '\0');
  int options[] = {jitErrorLog, jitErrorLogBytes};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)};
  CUresult result = context->driver.cuModuleLoadDataEx(&module, image.c_str(), 2, options, values);
  log.resize(std::strlen(log.c_str()));
  return result;
}

Result<std::unique_ptr<KernelSet>> Kernels::load(std::shared_ptr<const Context> context,
                                                 const DeviceCode &code) {
  Context::Scope scope(*context);
  const Driver &driver = context->driver;
  std::unique_ptr<Kernels> kernels(new Kernels(std::move(context)));
  std::string log;
  if (!code.cubin.empty()) {
    if (std::string problem = cubinProblem(code.cubin); !problem.empty())
      return Status(ErrorCode::InvalidData, "the code cannot be loaded: " + problem,
                    std::string(code.cubinName));
    CUresult result = kernels->loadModule(std::string(code.cubin), log);
    if (result == CUDA_SUCCESS)
      return std::unique_ptr<KernelSet>(std::move(kernels));
    // Machine code for another GPU is no mistake: there is PTX.
    if (result != CUDA_ERROR_NO_BINARY_FOR_GPU && result != CUDA_ERROR_INVALID_IMAGE)
      return driver.toStatus(result, "cuModuleLoadDataEx").in(code.cubinName);
  }
  CUresult result = kernels->loadModule(std::string(code.code), log);
  if (result == CUDA_SUCCESS)
    return std::unique_ptr<KernelSet>(std::move(kernels));
  if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    return Status(ErrorCode::Unsupported,
                  "NVIDIA's driver is too old for this PTX: it is for CUDA " +
                      versionToString(driver.version()),
                  std::string(code.name), "install a newer driver");
  Status status = driver.toStatus(result, "cuModuleLoadDataEx");
  return Status(result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_INVALID_IMAGE ||
                        result == CUDA_ERROR_NO_BINARY_FOR_GPU
                    ? ErrorCode::InvalidData
                    : status.code(),
                "the code cannot be loaded: " + status.message() + (log.empty() ? "" : "\n" + log),
                std::string(code.name));
}

Kernels::~Kernels() {
  if (!module)
    return;
  Context::Scope scope(*context);
  (void)context->driver.cuStreamSynchronize(context->compute);
  (void)context->driver.cuModuleUnload(module);
}

Result<Kernel *> Kernels::look(std::string_view name) {
  if (auto place = kernels.find(name); place != kernels.end())
    return place->second.get();
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  const Driver &driver = context->driver;
  CUresult result = driver.cuModuleGetFunction(&kernel->function, module, kernel->name.c_str());
  if (result == CUDA_ERROR_NOT_FOUND)
    return Status(ErrorCode::InvalidData, "the code has no kernel " + inQuotes(name));
  if (result != CUDA_SUCCESS)
    return driver.toStatus(result, "cuModuleGetFunction").at("kernel " + inQuotes(name));
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuFuncGetAttribute(&kernel->maximumThreads,
                                                        functionMaximumThreads, kernel->function));
  MOERT_CUDA_RETURN_IF_ERROR(
      driver, cuFuncGetAttribute(&kernel->staticShared, functionSharedBytes, kernel->function));
  return kernels.emplace(kernel->name, std::move(kernel)).first->second.get();
}

Status Kernels::allow(Kernel &kernel, const LaunchShape &shape) const {
  if (shape.threads == 0 || shape.threads > static_cast<unsigned>(kernel.maximumThreads))
    return {ErrorCode::Unsupported, "kernel " + inQuotes(kernel.name) + " is launched with " +
                                        std::to_string(shape.threads) + " threads; on " +
                                        context->info.name + " it can have 1 to " +
                                        std::to_string(kernel.maximumThreads)};
  std::uint64_t shared = std::uint64_t(shape.sharedBytes) +
                         static_cast<std::uint64_t>(std::max(kernel.staticShared, 0));
  if (shared > static_cast<std::uint64_t>(context->maximumSharedBytes))
    return {ErrorCode::Unsupported,
            "kernel " + inQuotes(kernel.name) + " needs " + std::to_string(shared) +
                " bytes of shared memory; " + context->info.name + " has " +
                std::to_string(context->maximumSharedBytes) + " for a block"};
  if (shape.overlap && !context->driver.cuLaunchKernelEx)
    return {ErrorCode::Unsupported, "kernel " + inQuotes(kernel.name) +
                                        " overlaps with the launch before it, which a driver for "
                                        "CUDA 11.8 or later can do; this one is for " +
                                        versionToString(context->driver.version())};
  if (shared > sharedWithoutAsking &&
      shape.sharedBytes > static_cast<unsigned>(kernel.dynamicShared)) {
    kernel.dynamicShared = static_cast<int>(shape.sharedBytes);
    MOERT_CUDA_RETURN_IF_ERROR(
        context->driver,
        cuFuncSetAttribute(kernel.function, functionMaximumDynamicShared, kernel.dynamicShared));
  }
  return {};
}

// The driver reads as many parameters as the kernel has, whatever it is given.
Status Kernels::check(const Kernel &kernel, const KernelParameters &parameters) const {
  if (!context->driver.cuFuncGetParamInfo) // before CUDA 12.4 nobody can tell
    return {};
  std::size_t pointers =
      std::size_t(parameters.bindings) + parameters.dimensions + (parameters.hasScratch ? 1 : 0);
  std::size_t count = pointers + parameters.tensorMaps, offset = 0, bytes = 0, found = 0;
  bool fits = true;
  CUresult result;
  while ((result = context->driver.cuFuncGetParamInfo(kernel.function, found, &offset, &bytes)) ==
         CUDA_SUCCESS) {
    fits &= bytes == (found < pointers ? sizeof(CUdeviceptr) : sizeof(EncodedTensorMap));
    ++found;
  }
  if ((fits && found == count) || result != CUDA_ERROR_INVALID_VALUE) // the end, or nobody can tell
    return {};
  return {ErrorCode::InvalidData, "kernel " + inQuotes(kernel.name) + " has " +
                                      std::to_string(found) + " parameters; the launch gives " +
                                      std::to_string(parameters.bindings) + " bindings, " +
                                      std::to_string(parameters.dimensions) + " dimensions, " +
                                      (parameters.hasScratch ? "" : "no ") + "scratch space and " +
                                      std::to_string(parameters.tensorMaps) + " tensor maps" +
                                      (found == count ? ", of other sizes" : "")};
}

Result<KernelHandle> Kernels::find(std::string_view name, const LaunchShape &shape,
                                   const KernelParameters &parameters) {
  Context::Scope scope(*context);
  MOERT_ASSIGN_OR_RETURN(Kernel * kernel, look(name));
  MOERT_RETURN_IF_ERROR(check(*kernel, parameters));
  MOERT_RETURN_IF_ERROR(allow(*kernel, shape));
  return static_cast<KernelHandle>(kernel);
}

} // namespace moert::cuda
