// Programs of a bundle, made ready to run fast: a step with the same symbols as the last one
// evaluates, looks up and allocates nothing.
#ifndef MOERT_SESSION_PROGRAM_H
#define MOERT_SESSION_PROGRAM_H

#include "runtime/bundle/Expression.h"
#include "runtime/device/cpu/KernelLibrary.h"
#include "runtime/device/cpu/Memory.h"
#include "runtime/device/cpu/ThreadPool.h"
#include "runtime/session/Model.h"

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
  // `program` outlives the result. Every kernel that the library lacks is reported.
  static Result<CompiledProgram> create(const moec::bundle::Program &program,
                                        const KernelLibrary &library, std::string_view place);

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
  struct Command {
    moert_kernel_function function = nullptr; // null: a copy of operand 0 to operand 1
    std::vector<Operand> operands;
    std::vector<SizeExpression> operandBytes; // needed by each operand; for a copy, of both
    std::vector<SizeExpression> dimensions;
    SizeExpression workgroups;
    SizeExpression scratchBytes;
    SizeExpression flops;
    SizeExpression bytesMoved;
  };

  const moec::bundle::Program *program = nullptr;
  std::vector<std::vector<SizeExpression>> inputShapes;
  std::vector<std::vector<SizeExpression>> outputShapes;
  std::vector<SizeExpression> arenaScales;
  std::vector<Command> commands;
};

// Memory that a program uses and somebody else owns.
struct MemorySpan {
  std::byte *data = nullptr;
  std::uint64_t bytes = 0;
  bool operator==(const MemorySpan &) const = default;
};

// One program at work, with arenas and inputs and outputs of its own. One thread at a time.
class ProgramRunner {
public:
  using Shape = std::vector<std::int64_t>;

  // Weights and globals by index; the spans outlive the runner. A weight's address may be set
  // later, by runStreaming.
  ProgramRunner(const CompiledProgram &program, std::span<const MemorySpan> weights,
                std::span<const MemorySpan> globals);

  // Fixes the symbols and everything that follows from them. `shapes` has a shape for each input,
  // `states` the pools. After a success input() may be filled and run() called; after a failure
  // prepare() must succeed first.
  Status prepare(std::span<const Shape> shapes, std::span<const MemorySpan> states);

  std::span<std::byte> input(std::size_t index) {
    return inputs[index].span().first(inputBytes[index]);
  }
  std::span<std::byte> output(std::size_t index) {
    return outputs[index].span().first(outputBytes[index]);
  }
  const Shape &outputShape(std::size_t index) const { return outputDimensions[index]; }

  Status run(ThreadPool::Lease &lease);

  // For the load program: before each command `acquire` is called for each weight of it and must
  // set its address in the span that the constructor was given; after it, `release`.
  Status runStreaming(ThreadPool::Lease &lease, const std::function<Status(std::uint32_t)> &acquire,
                      const std::function<void(std::uint32_t)> &release);

  void setProfiling(bool on);
  std::vector<ProfileEntry> profile() const;
  std::uint64_t arenaBytes() const;
  std::size_t launchCount() const { return ready.size(); }

private:
  struct Ready {
    moert_kernel_function function; // null: a copy
    moert_kernel_arguments arguments;
    std::uint32_t workgroups;
    std::uint32_t command;
    std::uint64_t bytes; // of a copy
  };
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
  MemorySpan locate(CompiledProgram::Operand operand, std::span<const MemorySpan> states) const;
  std::string commandName(std::size_t index) const;
  void runProfiled(ThreadPool::Lease &lease);
  static void runOne(const Ready &each, ThreadPool::Lease &lease);

  const CompiledProgram *program;
  std::span<const MemorySpan> weights;
  std::span<const MemorySpan> globals;

  bool prepared = false;
  std::vector<std::int64_t> symbols;
  std::vector<Shape> lastShapes;
  std::vector<MemorySpan> lastStates;
  std::vector<AlignedMemory> inputs, outputs, arenas;
  std::vector<std::uint64_t> inputBytes, outputBytes;
  std::vector<Shape> outputDimensions;
  std::vector<std::int64_t> scales;     // of the arenas
  std::vector<std::int64_t> dimensions; // of all commands, one after the other
  std::vector<void *> addresses;        // the same
  std::vector<Ready> ready;
  std::uint64_t scratchNeeded = 0;
  bool profiling = false;
  std::vector<Measured> measured; // by command
};

} // namespace moert

#endif
