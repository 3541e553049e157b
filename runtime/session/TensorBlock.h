// All inputs, or all outputs, of a program.
#ifndef MOERT_SESSION_TENSORBLOCK_H
#define MOERT_SESSION_TENSORBLOCK_H

#include "runtime/device/Device.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace moert {

// The tensors lie one after the other in one piece of the device's memory, and where the host
// cannot reach that, in a second one of the host's: one copy brings all of them from one side to
// the other.
class TensorBlock {
public:
  explicit TensorBlock(std::size_t count) : bytes(count), offsets(count) {}

  // The sizes in bytes, to be filled in before resize.
  std::uint64_t &size(std::size_t index) { return bytes[index]; }
  // Makes room. Whether addresses of tensors that keep their sizes may have changed.
  Result<bool> resize(Device &device, std::string_view what);

  std::span<std::byte> onHost(std::size_t index) const {
    return {host().data() + offsets[index], bytes[index]};
  }
  MemorySpan onDevice(std::size_t index) const {
    return {deviceMemory.data() + offsets[index], bytes[index]};
  }
  // All of them; nothing where host and device share memory.
  Transfer transfer() const;
  std::uint64_t memory() const { return deviceMemory.size(); }

private:
  const DeviceMemory &host() const { return hostMemory.data() ? hostMemory : deviceMemory; }

  std::vector<std::uint64_t> bytes, offsets;
  std::uint64_t used = 0;
  DeviceMemory deviceMemory, hostMemory;
};

} // namespace moert

#endif
