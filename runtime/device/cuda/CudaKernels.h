// A variant's code on a GPU: machine code where it fits, else PTX that the driver compiles.
#ifndef MOERT_DEVICE_CUDA_CUDAKERNELS_H
#define MOERT_DEVICE_CUDA_CUDAKERNELS_H

#include "runtime/device/cuda/CudaContext.h"

#include <map>
#include <string>

namespace moert::cuda {

// What a KernelHandle of a GPU points to.
struct Kernel {
  CUfunction function = nullptr;
  std::string name;
  int maximumThreads = 0;
  int staticShared = 0;
  int dynamicShared = 0; // allowed so far
};

class Kernels final : public KernelSet {
public:
  static Result<std::unique_ptr<KernelSet>> load(std::shared_ptr<const Context> context,
                                                 const DeviceCode &code);
  ~Kernels() override;

  Result<KernelHandle> find(std::string_view name, const LaunchShape &shape,
                            const KernelParameters &parameters) override;

private:
  explicit Kernels(std::shared_ptr<const Context> context) : context(std::move(context)) {}
  CUresult loadModule(const std::string &image, std::string &log);
  Result<Kernel *> look(std::string_view name);
  Status check(const Kernel &kernel, const KernelParameters &parameters) const;
  Status allow(Kernel &kernel, const LaunchShape &shape) const;

  std::shared_ptr<const Context> context;
  CUmodule module = nullptr;
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels;
};

} // namespace moert::cuda

#endif
