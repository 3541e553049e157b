// Weights on their way from files to a GPU: while one piece is copied to the device, threads read
// the next ones.
#ifndef MOERT_DEVICE_CUDA_CUDAFILLER_H
#define MOERT_DEVICE_CUDA_CUDAFILLER_H

#include "runtime/device/cpu/ThreadPool.h"
#include "runtime/device/cuda/CudaContext.h"

namespace moert::cuda {

class Filler final : public Device::Filler {
public:
  static Result<std::unique_ptr<Device::Filler>> create(std::shared_ptr<Context> context,
                                                        ThreadPool &pool);
  ~Filler() override;

  Status fill(MemorySpan to, const Device::PieceReader &read) override;

private:
  static constexpr std::uint64_t slotBytes = std::uint64_t(32) << 20;
  struct Slot {
    DeviceMemory memory;      // pinned; taken when first needed
    CUevent copied = nullptr; // the last copy out of it
  };

  Filler(std::shared_ptr<Context> context, ThreadPool &pool)
      : context(std::move(context)), pool(pool) {}
  Status readInto(std::span<std::byte> bytes, std::uint64_t offset,
                  const Device::PieceReader &read);

  std::shared_ptr<Context> context;
  ThreadPool &pool;
  Slot slots[3];
  std::size_t next = 0;
  CUevent filled = nullptr;
};

} // namespace moert::cuda

#endif
