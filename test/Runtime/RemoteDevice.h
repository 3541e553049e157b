// A device for tests that looks like a GPU and is none: its memory counts as out of the host's
// reach, it records command lists, and it can run out of memory whenever a test wants it to.
#ifndef MOERT_TEST_RUNTIME_REMOTEDEVICE_H
#define MOERT_TEST_RUNTIME_REMOTEDEVICE_H

#include "runtime/device/cpu/CpuDevice.h"
#include "test/Runtime/Support.h"

#include <cstring>
#include <list>
#include <random>
#include <vector>

namespace moert::test {

class RemoteDevice final : public Device {
public:
  RemoteDevice() {
    auto result = CpuDevice::create(1);
    EXPECT_TRUE(isOk(result));
    cpu = *result;
  }

  // Of ten allocations about so many fail.
  unsigned failures = 0;
  unsigned recorded = 0, replayed = 0;

  const std::string &name() const override { return displayName; }
  bool isHostAccessible() const override { return false; }
  unsigned threads() const override { return 1; }
  MemoryInfo memoryInfo() const override { return cpu->memoryInfo(); }
  Result<std::unique_ptr<KernelSet>> load(const DeviceCode &code) override {
    return cpu->load(code);
  }

  Result<DeviceMemory> allocate(std::uint64_t bytes, std::string_view what) override {
    if (random() % 10 < failures)
      return Status(ErrorCode::OutOfMemory, "no memory for " + std::string(what));
    MOERT_ASSIGN_OR_RETURN(DeviceMemory memory, cpu->allocate(bytes, what));
    MOERT_RETURN_IF_ERROR(cpu->set(memory.span(), std::byte(0x5a)));
    return memory;
  }
  // Moves every time, as on a GPU.
  Status grow(DeviceMemory &memory, std::uint64_t bytes, std::string_view what) override {
    if (memory.getOwner() && bytes <= memory.size())
      return {};
    MOERT_ASSIGN_OR_RETURN(DeviceMemory fresh, allocate(bytes, what));
    MOERT_RETURN_IF_ERROR(cpu->copy({fresh.data(), memory.size()}, memory.span()));
    MOERT_RETURN_IF_ERROR(
        cpu->set({fresh.data() + memory.size(), bytes - memory.size()}, std::byte(0)));
    memory = std::move(fresh);
    return {};
  }
  Result<DeviceMemory> allocateHost(std::uint64_t bytes, std::string_view what) override {
    return allocate(bytes, what);
  }

  Status upload(MemorySpan to, std::span<const std::byte> from) override {
    return cpu->upload(to, from);
  }
  Status download(std::span<std::byte> to, MemorySpan from) override {
    return cpu->download(to, from);
  }
  Status copy(MemorySpan to, MemorySpan from) override { return cpu->copy(to, from); }
  Status set(MemorySpan memory, std::byte value) override { return cpu->set(memory, value); }
  Status synchronise() override { return {}; }
  Result<std::unique_ptr<Filler>> makeFiller() override { return cpu->makeFiller(); }
  Status encode(const TensorMapShape &shape, EncodedTensorMap &result) override {
    return cpu->encode(shape, result);
  }

  Status run(const CommandList &list) override {
    if (list.upload.bytes != 0)
      std::memcpy(list.upload.device, list.upload.host, list.upload.bytes);
    MOERT_RETURN_IF_ERROR(cpu->run(list));
    if (list.download.bytes != 0)
      std::memcpy(list.download.host, list.download.device, list.download.bytes);
    return {};
  }
  Status runProfiled(const CommandList &list, std::span<CommandTime> times) override {
    MOERT_RETURN_IF_ERROR(run(list));
    for (CommandTime &time : times)
      time = {0, 1};
    return {};
  }
  Result<double> runTimed(const CommandList &list) override {
    MOERT_RETURN_IF_ERROR(run(list));
    return 1.0;
  }
  Result<std::unique_ptr<Recording>> record(const CommandList &list) override {
    ++recorded;
    return std::unique_ptr<Recording>(std::make_unique<Copy>(list));
  }
  Result<bool> replay(const Recording &recording) override {
    ++replayed;
    MOERT_RETURN_IF_ERROR(run(static_cast<const Copy &>(recording).list));
    return true;
  }

private:
  // Everything that the list points to but the memory that its commands work on.
  struct Copy final : Recording {
    explicit Copy(const CommandList &original)
        : commands(original.commands.begin(), original.commands.end()), list(original) {
      for (ReadyCommand &command : commands) {
        const moert_kernel_arguments &from = command.arguments;
        std::size_t count = command.kernel ? command.parameters.bindings : 2;
        auto &addresses = buffers.emplace_back(from.buffers, from.buffers + count);
        auto &sizes = dimensions.emplace_back(from.dimensions,
                                              from.dimensions + command.parameters.dimensions);
        command.arguments = {addresses.data(), sizes.data()};
      }
      list.commands = commands;
    }
    std::vector<ReadyCommand> commands;
    std::list<std::vector<void *>> buffers;
    std::list<std::vector<std::int64_t>> dimensions;
    CommandList list;
  };

  std::string displayName = "remote";
  std::shared_ptr<Device> cpu;
  std::mt19937 random{1};
};

} // namespace moert::test

#endif
