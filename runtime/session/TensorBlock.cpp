#include "runtime/session/TensorBlock.h"

#include "runtime/base/CheckedMath.h"

namespace moert {

Result<bool> TensorBlock::resize(Device &device, std::string_view what) {
  // What GPUs read fastest, and more than kernels are promised.
  constexpr std::uint64_t alignment = 256;
  // A few more tokens or blocks shall not move everything.
  constexpr std::uint64_t granule = 64 << 10;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    offsets[i] = end;
    std::uint64_t next;
    if (!checkedAdd(end, bytes[i], next) || !checkedAlign(next, alignment, end) || end > INT64_MAX)
      return Status(ErrorCode::InvalidArgument, std::string(what) + " are too large");
  }
  used = end;
  if (deviceMemory.data() && end <= deviceMemory.size())
    return false;
  deviceMemory.release();
  hostMemory.release();
  std::uint64_t room = (end + granule - 1) / granule * granule;
  MOERT_ASSIGN_OR_RETURN(DeviceMemory fresh, device.allocate(room, what));
  if (!device.isHostAccessible()) {
    // One copy brings what lies between tensors, too, and nobody writes there.
    MOERT_RETURN_IF_ERROR(device.set(fresh.span(), std::byte(0)));
    MOERT_ASSIGN_OR_RETURN(hostMemory, device.allocateHost(room, what));
  }
  deviceMemory = std::move(fresh); // both, or neither
  return true;
}

Transfer TensorBlock::transfer() const {
  if (!hostMemory.data())
    return {};
  return {hostMemory.data(), deviceMemory.data(), used};
}

} // namespace moert
