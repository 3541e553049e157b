#include "runtime/device/cuda/CudaFiller.h"

#include <algorithm>

namespace moert::cuda {

Result<std::unique_ptr<Device::Filler>> Filler::create(std::shared_ptr<Context> context,
                                                       ThreadPool &pool) {
  const Driver &driver = context->driver;
  std::unique_ptr<Filler> filler(new Filler(std::move(context), pool));
  Context::Scope scope(*filler->context);
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventCreate(&filler->filled, eventDisableTiming));
  for (Slot &slot : filler->slots)
    MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventCreate(&slot.copied, eventDisableTiming));
  return std::unique_ptr<Device::Filler>(std::move(filler));
}

Filler::~Filler() {
  Context::Scope scope(*context);
  (void)context->driver.cuStreamSynchronize(context->filling);
  for (Slot &slot : slots)
    if (slot.copied)
      (void)context->driver.cuEventDestroy_v2(slot.copied);
  if (filled)
    (void)context->driver.cuEventDestroy_v2(filled);
}

Status Filler::readInto(std::span<std::byte> bytes, std::uint64_t offset,
                        const Device::PieceReader &read) {
  constexpr std::uint64_t piece = std::uint64_t(4) << 20;
  auto pieces = static_cast<std::uint32_t>((bytes.size() + piece - 1) / piece);
  std::vector<Status> results(pieces);
  ThreadPool::Lease lease(pool);
  lease.forEach(pieces, [&](std::uint32_t i) {
    std::uint64_t begin = i * piece;
    results[i] = read(offset + begin, bytes.subspan(begin, std::min(piece, bytes.size() - begin)));
  });
  for (Status &result : results)
    MOERT_RETURN_IF_ERROR(std::move(result));
  return {};
}

Status Filler::fill(MemorySpan to, const Device::PieceReader &read) {
  const Driver &driver = context->driver;
  Context::Scope scope(*context);
  // What ran before may still use the memory.
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventRecord(filled, context->compute));
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuStreamWaitEvent(context->filling, filled, 0));
  for (std::uint64_t offset = 0; offset < to.bytes; offset += slotBytes) {
    Slot &slot = slots[next++ % std::size(slots)];
    if (!slot.memory.data()) {
      MOERT_ASSIGN_OR_RETURN(slot.memory, context->allocateHost(slotBytes, "reading weights"));
    } else {
      MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventSynchronize(slot.copied));
    }
    std::uint64_t count = std::min(slotBytes, to.bytes - offset);
    MOERT_RETURN_IF_ERROR(readInto({slot.memory.data(), count}, offset, read));
    MOERT_CUDA_RETURN_IF_ERROR(driver,
                               cuMemcpyHtoDAsync_v2(toPointer(to.data + offset), slot.memory.data(),
                                                    count, context->filling));
    MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventRecord(slot.copied, context->filling));
  }
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuEventRecord(filled, context->filling));
  MOERT_CUDA_RETURN_IF_ERROR(driver, cuStreamWaitEvent(context->compute, filled, 0));
  return {};
}

} // namespace moert::cuda
