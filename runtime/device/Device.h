// What programs run on: memory, code, and a list of launches and copies that is carried out in
// order. Programs, states and models know only this; device/cpu and device/cuda implement it.
#ifndef MOERT_DEVICE_DEVICE_H
#define MOERT_DEVICE_DEVICE_H

#include "runtime/abi/kernel_abi.h"
#include "runtime/base/ElementType.h"
#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moert {

// A place in a device's memory that somebody else owns. The host may follow the address only where
// Device::isHostAccessible says so.
struct MemorySpan {
  std::byte *data = nullptr;
  std::uint64_t bytes = 0;
  bool operator==(const MemorySpan &) const = default;
};

// Owns a piece of memory of a device, or of the host where a device can reach it quickly. Keeps
// what it was taken from alive. Aligned to 64 bytes at least.
class DeviceMemory {
public:
  // What gives the memory back when it goes.
  class Owner {
  public:
    virtual ~Owner() = default;
  };

  DeviceMemory() = default;
  DeviceMemory(std::byte *address, std::uint64_t bytes, std::unique_ptr<Owner> owner)
      : address(address), length(bytes), owner(std::move(owner)) {}
  DeviceMemory(DeviceMemory &&other) noexcept
      : address(std::exchange(other.address, nullptr)), length(std::exchange(other.length, 0)),
        owner(std::move(other.owner)) {}
  DeviceMemory &operator=(DeviceMemory &&other) noexcept {
    owner = std::move(other.owner);
    address = std::exchange(other.address, nullptr);
    length = std::exchange(other.length, 0);
    return *this;
  }

  std::byte *data() const { return address; }
  std::uint64_t size() const { return length; }
  MemorySpan span() const { return {address, length}; }
  void release() { *this = DeviceMemory(); }

  // For devices.
  Owner *getOwner() const { return owner.get(); }
  void moveTo(std::byte *newAddress, std::uint64_t newLength) {
    address = newAddress;
    length = newLength;
  }

private:
  std::byte *address = nullptr;
  std::uint64_t length = 0;
  std::unique_ptr<Owner> owner;
};

// How one launch of a kernel looks to a device of blocks and threads. The CPU needs none of it.
struct LaunchShape {
  std::uint32_t threads = 0;     // in a block
  std::uint32_t sharedBytes = 0; // of dynamic shared memory in a block
  bool overlap = false; // may begin while the launch before it ends; its code waits where it must
};

// What a launch hands to its kernel.
struct KernelParameters {
  std::uint32_t bindings = 0;
  std::uint32_t dimensions = 0;
  std::uint32_t tensorMaps = 0;
  bool hasScratch = false;
};

// A kernel of a loaded code; null: none. Whose it is, only its device knows.
using KernelHandle = const void *;

// A variant's code on a device. Its kernels live as long as it does.
class KernelSet {
public:
  virtual ~KernelSet() = default;
  // An error when there is no such kernel, or where the device can tell that it takes other
  // parameters or cannot be launched in this shape.
  virtual Result<KernelHandle> find(std::string_view name, const LaunchShape &shape,
                                    const KernelParameters &parameters) = 0;
};

struct DeviceCode {
  std::string_view code;       // a shared object, or PTX
  std::string_view name;       // in messages
  std::string_view cubin = {}; // machine code for CUDA; may be empty
  std::string_view cubinName = {};
};

// A tile-wise view of a binding for the tensor copy engine of NVIDIA GPUs.
struct TensorMapShape {
  enum class Swizzle : std::uint8_t { None = 0, Bytes32 = 1, Bytes64 = 2, Bytes128 = 3 };
  static constexpr std::size_t highestRank = 5;

  ElementType type = ElementType::Unspecified;
  std::byte *address = nullptr;
  std::uint32_t rank = 0;
  std::uint64_t sizes[highestRank] = {};           // elements, innermost first
  std::uint64_t strideBytes[highestRank - 1] = {}; // of all dimensions but the innermost
  std::uint32_t box[highestRank] = {};             // elements
  Swizzle swizzle = Swizzle::None;
};

// As the device reads it: opaque, and passed to the kernel by value.
struct alignas(128) EncodedTensorMap {
  std::byte content[128];
};

// One command of a program, everything evaluated.
struct ReadyCommand {
  KernelHandle kernel; // null: a copy of `bytes` bytes from buffers[0] to buffers[1]
  moert_kernel_arguments arguments;
  std::uint32_t workgroups; // not 0
  std::uint32_t command;    // its number in the program, for messages
  std::uint64_t bytes;
  // What follows counts on devices with memory of their own only.
  KernelParameters parameters;
  LaunchShape shape;
  const EncodedTensorMap *tensorMaps;
};

// Bytes that go between host and device around the commands.
struct Transfer {
  std::byte *host = nullptr;
  std::byte *device = nullptr;
  std::uint64_t bytes = 0;
};

// What a program does once its sizes are known.
struct CommandList {
  std::span<const ReadyCommand> commands;
  std::uint64_t scratchBytes = 0; // the most that a launch needs
  Transfer upload;                // before the first command
  Transfer download;              // after the last
};

// When a command ran, in seconds since the list began.
struct CommandTime {
  double begin = 0;
  double seconds = 0;
};

struct MemoryInfo {
  std::uint64_t free = 0;
  std::uint64_t total = 0; // 0: unknown
};

// Safe to use from several threads; what they hand over runs in one order. Functions named
// "queues" return at once where the device works on its own (those of the CPU do the work right
// away); an error of theirs may show only later, in synchronise. A device that failed stays failed.
class Device {
public:
  // Fills `bytes` with the content from `offset` on. Called from several threads at once.
  using PieceReader = std::function<Status(std::uint64_t offset, std::span<std::byte> bytes)>;

  // Brings large content into the device's memory. One thread at a time.
  class Filler {
  public:
    virtual ~Filler() = default;
    // Queues: what runs after it sees the content. `read` is not called after it returns.
    virtual Status fill(MemorySpan to, const PieceReader &read) = 0;
  };

  // A command list in the device's own form: the same commands, sizes and addresses.
  class Recording {
  public:
    virtual ~Recording() = default;
  };

  virtual ~Device() = default;

  virtual const std::string &name() const = 0; // "cpu", "cuda:0"
  // Whether memory of the device is plain memory of the process.
  virtual bool isHostAccessible() const = 0;
  // Threads of this process that work for the device.
  virtual unsigned threads() const = 0;
  virtual MemoryInfo memoryInfo() const = 0;

  virtual Result<std::unique_ptr<KernelSet>> load(const DeviceCode &code) = 0;

  // The content is anything. `what` names the purpose in the out-of-memory error.
  virtual Result<DeviceMemory> allocate(std::uint64_t bytes, std::string_view what) = 0;
  // To at least `bytes`; keeps the content, zeroes what is new. The address may change. Unchanged
  // on failure.
  virtual Status grow(DeviceMemory &memory, std::uint64_t bytes, std::string_view what) = 0;
  // Memory of the host for Transfer.
  virtual Result<DeviceMemory> allocateHost(std::uint64_t bytes, std::string_view what) = 0;

  // Queues; `from` may change as soon as it returns.
  virtual Status upload(MemorySpan to, std::span<const std::byte> from) = 0;
  // Waits for everything before it.
  virtual Status download(std::span<std::byte> to, MemorySpan from) = 0;
  // Queues. `to` is as long as `from`; the two do not overlap.
  virtual Status copy(MemorySpan to, MemorySpan from) = 0;
  // Queues: every byte becomes `value`.
  virtual Status set(MemorySpan memory, std::byte value) = 0;
  // Waits for everything that was queued.
  virtual Status synchronise() = 0;
  virtual Result<std::unique_ptr<Filler>> makeFiller() = 0;

  virtual Status encode(const TensorMapShape &shape, EncodedTensorMap &result) = 0;

  // Queues the commands, in order. What the list points to stays until synchronise.
  virtual Status run(const CommandList &list) = 0;
  // Runs them one by one and waits; one time for each command.
  virtual Status runProfiled(const CommandList &list, std::span<CommandTime> times) = 0;
  // Runs them in one go and waits: the seconds from the first one's begin to the last one's end,
  // without the transfers.
  virtual Result<double> runTimed(const CommandList &list) = 0;
  // Null where run() is the fastest way. What the list points to may change afterwards, the host's
  // side of the transfers excepted.
  virtual Result<std::unique_ptr<Recording>> record(const CommandList &list) = 0;
  // Queues; false when the recording no longer holds, as when the device's scratch space moved.
  virtual Result<bool> replay(const Recording &recording) = 0;
};

} // namespace moert

#endif
