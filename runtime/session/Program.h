// Programs of a bundle, made ready to run fast: a step with the same symbols as the last one
// evaluates, looks up and allocates nothing.
#ifndef MOERT_SESSION_PROGRAM_H
#define MOERT_SESSION_PROGRAM_H

#include "runtime/bundle/Expression.h"
#include "runtime/device/Device.h"
#include "runtime/session/Model.h"
#include "runtime/session/RecordingCache.h"
#include "runtime/session/TensorBlock.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moert {

// A validated program with its kernels found and its expressions unpacked. Immutable.
class CompiledProgram {
public:
  // `program` and `kernels` outlive the result. Every kernel that the code lacks is reported.
  static Result<CompiledProgram> create(const moec::bundle::Program &program, KernelSet &kernels,
                                        std::string_view place);

  const moec::bundle::Program &source() const { return *program; }
  int inputIndex(std::string_view name) const;  // -1: none
  int outputIndex(std::string_view name) const; // -1: none

private:
  friend class ProgramRunner;

  enum class Kind : std::uint8_t { Buffer, Weight, Global, Input, Output, State };
  struct Operand {
    Kind kind = Kind::Buffer;
    std::uint32_t index = 0;
  };
  struct TensorMap {
    TensorMapShape shape; // all but the address, the sizes and the strides
    std::uint32_t operand = 0;
    std::vector<SizeExpression> sizes, strides;
  };
  struct Command {
    KernelHandle kernel = nullptr; // null: a copy of operand 0 to operand 1
    std::vector<Operand> operands;
    std::vector<SizeExpression> operandBytes; // needed by each operand; for a copy, of both
    std::vector<SizeExpression> dimensions;
    SizeExpression workgroups;
    SizeExpression scratchBytes;
    SizeExpression flops;
    SizeExpression bytesMoved;
    KernelParameters parameters;
    LaunchShape shape;
    std::vector<TensorMap> tensorMaps;
  };

  static TensorMap makeTensorMap(const moec::bundle::TensorMap &map);

  const moec::bundle::Program *program = nullptr;
  std::vector<std::vector<SizeExpression>> inputShapes;
  std::vector<std::vector<SizeExpression>> outputShapes;
  std::vector<SizeExpression> arenaScales;
  std::vector<Command> commands;
};

// One program at work on one device, with arenas and inputs and outputs of its own. One thread at a
// time.
class ProgramRunner {
public:
  using Shape = std::vector<std::int64_t>;

  // Weights and globals by index; the spans and the device outlive the runner. A weight's address
  // may be set later, by runStreaming. With `record`, the device may keep what runs again in a form
  // of its own.
  ProgramRunner(const CompiledProgram &program, std::span<const MemorySpan> weights,
                std::span<const MemorySpan> globals, Device &device, bool record);

  // Input `index` lies in `memory` of the device, which somebody else fills, from the next
  // prepare() on.
  void borrowInput(std::size_t index, MemorySpan memory);
  // Fixes the symbols and everything that follows from them. `shapes` has a shape for each input,
  // `states` the pools. After a success input() may be filled and run() called; after a failure
  // prepare() must succeed first.
  Status prepare(std::span<const Shape> shapes, std::span<const MemorySpan> states);

  // On the host: inputs after prepare() until run(), outputs after it. Not inputs that are
  // borrowed.
  std::span<std::byte> input(std::size_t index) { return inputs.onHost(index); }
  std::span<std::byte> output(std::size_t index) { return outputs.onHost(index); }
  MemorySpan outputOnDevice(std::size_t index) const { return outputs.onDevice(index); }
  const Shape &outputShape(std::size_t index) const { return outputDimensions[index]; }

  // Returns when the outputs are there.
  Status run();
  // Queues: the outputs stay on the device, until fetch() brings them to the host.
  Status start();
  Status fetch();

  // For the load program: before each command `acquire` is called for each weight of it and must
  // set its address in the span that the constructor was given; after it, `release`. The work is
  // queued; Device::synchronise waits for it.
  Status runStreaming(const std::function<Status(std::uint32_t)> &acquire,
                      const std::function<void(std::uint32_t)> &release);

  // Times every launch, and tells `timeline`, if there is one.
  void setProfiling(bool on, Timeline *timeline = nullptr);
  std::vector<ProfileEntry> profile() const;
  // Runs the program again: seconds that all launches take in one go.
  Result<double> runTimed();
  std::uint64_t arenaBytes() const;
  std::size_t launchCount() const { return ready.size(); }

private:
  struct Measured {
    std::uint64_t launches = 0;
    double seconds = 0;
    double flops = 0;
    double bytesMoved = 0;
  };

  Status bindSymbols(std::span<const Shape> shapes, std::span<const MemorySpan> states,
                     std::vector<std::int64_t> &values) const;
  Status resize(std::span<const Shape> shapes);
  Status resizeArenas();
  Status readyCommands(std::span<const MemorySpan> states);
  Status encodeTensorMaps(const ReadyCommand &each);
  void makeKey();
  MemorySpan locate(CompiledProgram::Operand operand, std::span<const MemorySpan> states) const;
  std::string commandName(std::size_t index) const;
  std::string symbolsToString() const;
  CommandList commandList(bool fetches) const;
  Status queue(bool fetches);
  Status runRecorded(bool fetches);
  Status runProfiled(bool fetches);
  void note(const ReadyCommand &each, CommandTime time, double programBegin);

  const CompiledProgram *program;
  std::span<const MemorySpan> weights;
  std::span<const MemorySpan> globals;
  Device *device;
  bool hostAccessible;
  bool recording;

  bool prepared = false;
  bool isRunning = false; // perhaps: inputs on the host are still being read
  std::vector<std::int64_t> symbols;
  std::vector<Shape> lastShapes;
  std::vector<MemorySpan> lastStates;
  std::vector<MemorySpan> borrowed; // by input; no address: the runner's own
  TensorBlock inputs, outputs;
  std::vector<DeviceMemory> arenas;
  std::vector<Shape> outputDimensions;
  std::vector<std::int64_t> scales;     // of the arenas
  std::vector<std::int64_t> dimensions; // of all commands, one after the other
  std::vector<void *> addresses;        // the same
  std::vector<EncodedTensorMap> tensorMaps;
  std::vector<ReadyCommand> ready;
  std::uint64_t scratchNeeded = 0;
  RecordingCache recordings;
  RecordingCache::Key key; // of the prepared sizes and addresses
  bool profiling = false;
  Timeline *timeline = nullptr;
  std::vector<Measured> measured; // by command
  std::vector<CommandTime> times;
};

} // namespace moert

#endif
