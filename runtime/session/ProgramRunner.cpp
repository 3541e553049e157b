// Making a program ready: sizes, memory, addresses. ProgramRun.cpp runs it.
#include "runtime/base/CheckedMath.h"
#include "runtime/session/Program.h"

#include <algorithm>

namespace moert {

ProgramRunner::ProgramRunner(const CompiledProgram &program, std::span<const MemorySpan> weights,
                             std::span<const MemorySpan> globals, Device &device, bool record)
    : program(&program), weights(weights), globals(globals), device(&device),
      hostAccessible(device.isHostAccessible()),
      // Where the host runs the commands itself, nothing is faster than doing so.
      recording(record && !hostAccessible),
      symbols(static_cast<std::size_t>(program.source().symbols_size())),
      borrowed(program.inputShapes.size()), inputs(program.inputShapes.size()),
      outputs(program.outputShapes.size()), arenas(program.arenaScales.size()),
      outputDimensions(program.outputShapes.size()), scales(program.arenaScales.size()),
      measured(program.commands.size()) {
  std::size_t operands = 0, sizes = 0, maps = 0;
  for (const CompiledProgram::Command &command : program.commands) {
    operands += command.operands.size();
    sizes += command.dimensions.size();
    maps += command.tensorMaps.size();
  }
  // Never resized: the prepared launches point into them.
  addresses.resize(operands);
  dimensions.resize(sizes);
  tensorMaps.resize(maps);
  ready.reserve(program.commands.size());
}

std::string ProgramRunner::commandName(std::size_t index) const {
  const auto &command = program->source().commands(static_cast<int>(index));
  return "command " + std::to_string(index) +
         (command.has_launch() ? " " + inQuotes(command.launch().kernel()) : " (a copy)");
}

// " with tokens = 3, rows = 1".
std::string ProgramRunner::symbolsToString() const {
  const moec::bundle::Program &source = program->source();
  std::string text;
  for (int i = 0; i < source.symbols_size(); ++i)
    text += (i ? ", " : " with ") + source.symbols(i) + " = " +
            std::to_string(symbols[static_cast<std::size_t>(i)]);
  return text;
}

Status ProgramRunner::bindSymbols(std::span<const Shape> shapes, std::span<const MemorySpan> states,
                                  std::vector<std::int64_t> &values) const {
  const moec::bundle::Program &source = program->source();
  Problems problems("entry " + inQuotes(source.name()));
  std::vector<bool> known(values.size(), false);
  auto bind = [&](std::int64_t symbol, std::int64_t value, const std::string &what) {
    auto index = static_cast<std::size_t>(symbol);
    if (known[index] && values[index] != value)
      problems.add(what + " is " + std::to_string(value) + ", but " +
                   source.symbols(static_cast<int>(symbol)) + " is already " +
                   std::to_string(values[index]));
    known[index] = true;
    values[index] = value;
  };
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const moec::bundle::Tensor &input = source.inputs(static_cast<int>(i));
    std::string what = "input " + inQuotes(input.name());
    if (shapes[i].size() != static_cast<std::size_t>(input.shape_size())) {
      problems.add(what + ": expected " + std::to_string(input.shape_size()) +
                   " dimensions, found " + std::to_string(shapes[i].size()));
      continue;
    }
    for (std::size_t d = 0; d < shapes[i].size(); ++d) {
      if (shapes[i][d] < 0)
        problems.add(what + ": a negative dimension");
      else if (std::int64_t symbol = soleSymbol(input.shape(static_cast<int>(d))); symbol >= 0)
        bind(symbol, shapes[i][d], what + ": dimension " + std::to_string(d));
    }
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    const moec::bundle::State &state = source.states(static_cast<int>(i));
    bind(state.pool_symbol(), static_cast<std::int64_t>(states[i].bytes / state.bytes()),
         "the pool of state " + inQuotes(state.name()));
  }
  if (!problems.empty())
    return problems.toStatus(ErrorCode::InvalidArgument);
  // Every symbol is known: validation saw an input or a pool for each. Now the dimensions that are
  // more than a symbol.
  for (std::size_t i = 0; i < shapes.size(); ++i)
    for (std::size_t d = 0; d < shapes[i].size(); ++d)
      if (auto wanted = program->inputShapes[i][d].evaluate(values); wanted != shapes[i][d])
        problems.add("input " + inQuotes(source.inputs(static_cast<int>(i)).name()) +
                     ": dimension " + std::to_string(d) + ": expected " +
                     (wanted ? std::to_string(*wanted) : "a number that exists") + ", found " +
                     std::to_string(shapes[i][d]));
  return problems.toStatus(ErrorCode::InvalidArgument);
}

void ProgramRunner::borrowInput(std::size_t index, MemorySpan memory) {
  if (borrowed[index] == memory)
    return;
  borrowed[index] = memory;
  prepared = false;
}

Status ProgramRunner::prepare(std::span<const Shape> shapes, std::span<const MemorySpan> states) {
  const moec::bundle::Program &source = program->source();
  if (shapes.size() != program->inputShapes.size() ||
      states.size() != static_cast<std::size_t>(source.states_size()))
    return {ErrorCode::Internal, "wrong number of inputs or states"};
  if (isRunning)
    MOERT_RETURN_IF_ERROR(device->synchronise());
  isRunning = false;
  if (prepared && std::equal(shapes.begin(), shapes.end(), lastShapes.begin(), lastShapes.end()) &&
      std::equal(states.begin(), states.end(), lastStates.begin(), lastStates.end()))
    return {};
  prepared = false;
  MOERT_RETURN_IF_ERROR(bindSymbols(shapes, states, symbols));
  lastShapes.assign(shapes.begin(), shapes.end());
  lastStates.assign(states.begin(), states.end());
  std::string place = "entry " + inQuotes(source.name()) + symbolsToString();
  if (Status status = resize(shapes); !status.isOk())
    return std::move(status).in(place);
  if (Status status = resizeArenas(); !status.isOk())
    return std::move(status).in(place);
  if (Status status = readyCommands(states); !status.isOk())
    return std::move(status).in(place);
  if (recording)
    makeKey();
  prepared = true;
  return {};
}

// Inputs and outputs.
Status ProgramRunner::resize(std::span<const Shape> shapes) {
  const moec::bundle::Program &source = program->source();
  auto measure = [](std::uint64_t &bytes, const moec::bundle::Tensor &tensor,
                    const Shape &shape) -> Status {
    auto size = tensorBytes(elementType(tensor.type()), shape);
    if (!size)
      return {ErrorCode::InvalidArgument,
              inQuotes(tensor.name()) + " of shape " + shapeToString(shape) + " is too large"};
    bytes = *size;
    return {};
  };
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const moec::bundle::Tensor &input = source.inputs(static_cast<int>(i));
    MOERT_RETURN_IF_ERROR(measure(inputs.size(i), input, shapes[i]));
    if (!borrowed[i].data)
      continue;
    if (inputs.size(i) > borrowed[i].bytes)
      return {ErrorCode::Internal, "input " + inQuotes(input.name()) + " needs " +
                                       std::to_string(inputs.size(i)) + " bytes and has " +
                                       std::to_string(borrowed[i].bytes)};
    inputs.size(i) = 0;
  }
  for (std::size_t i = 0; i < outputDimensions.size(); ++i) {
    const moec::bundle::Tensor &output = source.outputs(static_cast<int>(i));
    Shape &shape = outputDimensions[i];
    shape.clear();
    for (const SizeExpression &dimension : program->outputShapes[i]) {
      auto size = dimension.evaluate(symbols);
      if (!size || *size < 0)
        return {ErrorCode::InvalidData, "output " + inQuotes(output.name()) +
                                            " has a dimension that is negative or overflows"};
      shape.push_back(*size);
    }
    MOERT_RETURN_IF_ERROR(measure(outputs.size(i), output, shape));
  }
  // Recordings use the old addresses.
  MOERT_ASSIGN_OR_RETURN(bool inputsMoved, inputs.resize(*device, "the inputs"));
  if (inputsMoved)
    recordings.clear();
  MOERT_ASSIGN_OR_RETURN(bool outputsMoved, outputs.resize(*device, "the outputs"));
  if (outputsMoved)
    recordings.clear();
  return {};
}

Status ProgramRunner::resizeArenas() {
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    auto scale = program->arenaScales[i].evaluate(symbols);
    std::uint64_t bytes;
    if (!scale || *scale < 0 ||
        !checkedMultiply<std::uint64_t>(static_cast<std::uint64_t>(*scale),
                                        program->source().arenas(static_cast<int>(i)).bytes(),
                                        bytes) ||
        bytes > INT64_MAX)
      return {ErrorCode::InvalidData,
              "arena " + std::to_string(i) + " has a size that is negative or overflows"};
    scales[i] = *scale;
    if (arenas[i].data() && bytes <= arenas[i].size())
      continue;
    recordings.clear();
    arenas[i].release();
    MOERT_ASSIGN_OR_RETURN(arenas[i], device->allocate(bytes, "temporaries"));
#ifndef NDEBUG
    // NaN in every floating-point type, -1 in every integer: whoever reads before writing is found.
    MOERT_RETURN_IF_ERROR(device->set(arenas[i].span(), std::byte(0xff)));
#endif
  }
  return {};
}

MemorySpan ProgramRunner::locate(CompiledProgram::Operand operand,
                                 std::span<const MemorySpan> states) const {
  switch (operand.kind) {
  case CompiledProgram::Kind::Buffer: {
    const moec::bundle::Buffer &buffer = program->source().buffers(static_cast<int>(operand.index));
    // In bounds: the buffer lies in its arena, and the arena's size did not overflow.
    auto scale = static_cast<std::uint64_t>(scales[buffer.arena()]);
    return {arenas[buffer.arena()].data() + buffer.offset() * scale, buffer.bytes() * scale};
  }
  case CompiledProgram::Kind::Weight:
    return weights[operand.index];
  case CompiledProgram::Kind::Global:
    return globals[operand.index];
  case CompiledProgram::Kind::Input:
    return borrowed[operand.index].data ? borrowed[operand.index] : inputs.onDevice(operand.index);
  case CompiledProgram::Kind::Output:
    return outputs.onDevice(operand.index);
  case CompiledProgram::Kind::State:
    return states[operand.index];
  }
  return {};
}

Status ProgramRunner::readyCommands(std::span<const MemorySpan> states) {
  ready.clear();
  scratchNeeded = 0;
  void **address = addresses.data();
  std::int64_t *dimension = dimensions.data();
  EncodedTensorMap *tensorMap = tensorMaps.data();
  Problems problems("");
  for (std::size_t i = 0; i < program->commands.size(); ++i) {
    const CompiledProgram::Command &command = program->commands[i];
    ReadyCommand each = {};
    each.kernel = command.kernel;
    each.arguments = {address, dimension};
    each.command = static_cast<std::uint32_t>(i);
    each.parameters = command.parameters;
    each.shape = command.shape;
    each.tensorMaps = tensorMap;
    tensorMap += command.tensorMaps.size();
    for (std::size_t k = 0; k < command.operands.size(); ++k) {
      MemorySpan place = locate(command.operands[k], states);
      auto needed = command.operandBytes[k].evaluate(symbols);
      if (!needed || *needed < 0 || static_cast<std::uint64_t>(*needed) > place.bytes)
        problems.add(commandName(i) + ": binding " + std::to_string(k) + " needs " +
                     (needed ? std::to_string(*needed) : "too many") + " bytes and has " +
                     std::to_string(place.bytes));
      else
        each.bytes = static_cast<std::uint64_t>(*needed);
      *address++ = place.data;
    }
    for (const SizeExpression &expression : command.dimensions) {
      auto size = expression.evaluate(symbols);
      if (!size || *size < 0)
        problems.add(commandName(i) + ": a dimension is negative or overflows");
      *dimension++ = size.value_or(0);
    }
    auto scratch = command.scratchBytes.evaluate(symbols);
    auto workgroups = command.kernel ? command.workgroups.evaluate(symbols)
                                     : std::optional<std::int64_t>(each.bytes != 0);
    if (!scratch || *scratch < 0 || !workgroups || *workgroups < 0 || *workgroups > INT32_MAX) {
      problems.add(commandName(i) + ": its scratch space or its number of workgroups is negative "
                                    "or too large");
      continue;
    }
    if (*workgroups == 0)
      continue;
    scratchNeeded = std::max(scratchNeeded, static_cast<std::uint64_t>(*scratch));
    each.workgroups = static_cast<std::uint32_t>(*workgroups);
    if (each.parameters.tensorMaps != 0 && problems.empty())
      if (Status status = encodeTensorMaps(each); !status.isOk())
        problems.add(commandName(i) + ": " + status.message());
    ready.push_back(each);
  }
  return problems.toStatus(ErrorCode::InvalidData);
}

// Sizes, the addresses of states and of borrowed inputs, and whether outputs are fetched;
// everything else in a recording moves only when it is thrown away.
void ProgramRunner::makeKey() {
  key.clear();
  for (const Shape &shape : lastShapes)
    key.insert(key.end(), shape.begin(), shape.end());
  for (const MemorySpan &state : lastStates) {
    key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(state.data)));
    key.push_back(static_cast<std::int64_t>(state.bytes));
  }
  for (const MemorySpan &input : borrowed)
    key.push_back(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(input.data)));
  key.push_back(false);
}

} // namespace moert
