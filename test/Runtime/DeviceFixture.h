// Tests that run once for each kind of device. Where there is no GPU, those for CUDA are skipped
// and say why.
#ifndef MOERT_TEST_RUNTIME_DEVICEFIXTURE_H
#define MOERT_TEST_RUNTIME_DEVICEFIXTURE_H

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "test/Runtime/CudaTestKernels.h"
#include "test/Runtime/TestBundle.h"

#include <list>
#include <memory>
#include <string>
#include <vector>

namespace moert::test {

class DeviceTest : public testing::TestWithParam<std::string> {
protected:
  static constexpr unsigned threadsOfABlock = 256;

  bool isCuda() const { return GetParam() == "cuda"; }

  void SetUp() override {
    if (isCuda()) {
      cuda::Fit fit = cuda::findDevice({7, 0, false, 0}, -1);
      if (fit.index < 0)
        GTEST_SKIP() << "it needs " << fit.missing;
      cudaIndex = fit.index;
    }
    open(device);
    ASSERT_TRUE(device);
    loadKernels(*device, kernels);
  }

  // A device of this kind. The second GPU for the second one, where there is one.
  void open(std::shared_ptr<Device> &result, bool isSecond = false) {
    int index = cudaIndex;
    if (isCuda() && isSecond)
      if (cuda::Fit other = cuda::findDevice({7, 0, false, 0}, index + 1); other.index >= 0)
        index = other.index;
    auto opened = isCuda() ? cuda::CudaDevice::create(index, 2) : CpuDevice::create(2);
    ASSERT_TRUE(isOk(opened));
    result = *opened;
  }

  void loadKernels(Device &on, std::unique_ptr<KernelSet> &result) {
    std::string code = isCuda() ? cudaTestKernels : readFile(testKernelsPath());
    auto loaded = on.load({code, isCuda() ? "kernels.ptx" : "kernels.so"});
    ASSERT_TRUE(isOk(loaded));
    result = *std::move(loaded);
  }

  int cudaIndex = -1;
  std::shared_ptr<Device> device;
  std::unique_ptr<KernelSet> kernels;
};

// Memory of a device that holds 32-bit integers.
class Integers {
public:
  Integers(Device &device, std::size_t count) : device(device), count(count) {
    auto result = device.allocate(4 * count, "a test");
    EXPECT_TRUE(isOk(result));
    if (result.isOk())
      memory = *std::move(result);
  }
  Integers(Device &device, const std::vector<std::int32_t> &values)
      : Integers(device, values.size()) {
    EXPECT_TRUE(isOk(device.upload(span(), std::as_bytes(std::span(values)))));
  }
  MemorySpan span() const { return {memory.data(), 4 * count}; }
  std::vector<std::int32_t> read() const {
    std::vector<std::int32_t> values(count);
    EXPECT_TRUE(isOk(device.download(std::as_writable_bytes(std::span(values)), span())));
    return values;
  }

private:
  Device &device;
  std::size_t count;
  DeviceMemory memory;
};

// A command list put together by hand.
class Commands {
public:
  explicit Commands(KernelSet &kernels) : kernels(kernels) {}

  void launch(std::string_view name, std::uint32_t workgroups,
              std::initializer_list<MemorySpan> bindings,
              std::initializer_list<std::int64_t> dimensions, std::uint64_t scratchBytes = 0,
              const LaunchShape &shape = {.threads = 256},
              const EncodedTensorMap *tensorMap = nullptr) {
    ReadyCommand &command = add(bindings, dimensions);
    command.workgroups = workgroups;
    command.parameters.hasScratch = scratchBytes != 0;
    command.parameters.tensorMaps = tensorMap ? 1 : 0;
    command.tensorMaps = tensorMap;
    command.shape = shape;
    auto kernel = kernels.find(name, shape, command.parameters);
    ASSERT_TRUE(isOk(kernel)) << std::string(name);
    command.kernel = *kernel;
    most = std::max(most, scratchBytes);
  }
  void copy(MemorySpan from, MemorySpan to) {
    ReadyCommand &command = add({from, to}, {});
    command.bytes = from.bytes;
    command.workgroups = 1;
  }
  CommandList list() const { return {commands, most, upload, download}; }

  Transfer upload, download;

private:
  ReadyCommand &add(std::initializer_list<MemorySpan> bindings,
                    std::initializer_list<std::int64_t> dimensions) {
    std::vector<void *> &addresses = buffers.emplace_back();
    for (const MemorySpan &span : bindings)
      addresses.push_back(span.data);
    ReadyCommand command = {};
    command.arguments = {addresses.data(), sizes.emplace_back(dimensions).data()};
    command.parameters.bindings = static_cast<std::uint32_t>(bindings.size());
    command.parameters.dimensions = static_cast<std::uint32_t>(dimensions.size());
    command.command = static_cast<std::uint32_t>(commands.size());
    return commands.emplace_back(command);
  }

  KernelSet &kernels;
  std::vector<ReadyCommand> commands;
  std::list<std::vector<void *>> buffers;
  std::list<std::vector<std::int64_t>> sizes;
  std::uint64_t most = 0;
};

} // namespace moert::test

#endif
