// Running a program that ProgramRunner.cpp made ready: at once, recorded, timed, or weight by
// weight.
#include "runtime/session/Program.h"
#include "runtime/session/Timeline.h"

#include <cassert>
#include <utility>

namespace moert {

CommandList ProgramRunner::commandList(bool fetches) const {
  return {ready, scratchNeeded, inputs.transfer(), fetches ? outputs.transfer() : Transfer()};
}

Status ProgramRunner::run() {
  MOERT_RETURN_IF_ERROR(queue(/*fetches=*/true));
  isRunning = false;
  return hostAccessible ? Status() : device->synchronise();
}

Status ProgramRunner::start() { return queue(/*fetches=*/false); }

Status ProgramRunner::fetch() {
  if (hostAccessible)
    return {};
  isRunning = false;
  Transfer transfer = outputs.transfer();
  if (transfer.bytes == 0)
    return device->synchronise();
  return device->download({transfer.host, transfer.bytes}, {transfer.device, transfer.bytes});
}

Status ProgramRunner::queue(bool fetches) {
  assert(prepared);
  isRunning = !hostAccessible;
  if (profiling)
    return runProfiled(fetches);
  return recording ? runRecorded(fetches) : device->run(commandList(fetches));
}

// What runs for the second time will run often: it is recorded then.
Status ProgramRunner::runRecorded(bool fetches) {
  key.back() = fetches;
  RecordingCache::Entry &entry = recordings.find(key);
  if (entry.recording) {
    MOERT_ASSIGN_OR_RETURN(bool holds, device->replay(*entry.recording));
    if (holds)
      return {};
    entry.recording.reset();
  }
  if (!std::exchange(entry.ranBefore, true) || entry.isRefused)
    return device->run(commandList(fetches));
  MOERT_ASSIGN_OR_RETURN(entry.recording, device->record(commandList(fetches)));
  if (entry.recording) {
    MOERT_ASSIGN_OR_RETURN(bool holds, device->replay(*entry.recording));
    if (holds)
      return {};
  }
  entry.isRefused = !entry.recording;
  return device->run(commandList(fetches));
}

Status ProgramRunner::runProfiled(bool fetches) {
  times.resize(ready.size());
  double begin = timeline ? timeline->now() : 0;
  MOERT_RETURN_IF_ERROR(device->runProfiled(commandList(fetches), times));
  double seconds = timeline ? timeline->now() - begin : 0;
  for (std::size_t i = 0; i < ready.size(); ++i)
    note(ready[i], times[i], begin);
  if (timeline)
    timeline->add({program->source().name() + symbolsToString(), "", begin, seconds});
  return {};
}

void ProgramRunner::note(const ReadyCommand &each, CommandTime time, double programBegin) {
  const CompiledProgram::Command &command = program->commands[each.command];
  auto flops = static_cast<double>(command.flops.evaluate(symbols).value_or(0));
  auto bytesMoved =
      static_cast<double>(each.kernel ? command.bytesMoved.evaluate(symbols).value_or(0)
                                      : static_cast<std::int64_t>(2 * each.bytes));
  Measured &entry = measured[each.command];
  ++entry.launches;
  entry.seconds += time.seconds;
  entry.flops += flops;
  entry.bytesMoved += bytesMoved;
  if (!timeline)
    return;
  const auto &source = program->source().commands(static_cast<int>(each.command));
  timeline->add({source.has_launch() ? source.launch().source() : "copy",
                 source.has_launch() ? source.launch().kernel() : "copy", programBegin + time.begin,
                 time.seconds, each.workgroups, flops, bytesMoved});
}

Status ProgramRunner::runStreaming(const std::function<Status(std::uint32_t)> &acquire,
                                   const std::function<void(std::uint32_t)> &release) {
  assert(prepared);
  for (const ReadyCommand &each : ready) {
    const CompiledProgram::Command &command = program->commands[each.command];
    auto slots = const_cast<void **>(each.arguments.buffers);
    for (std::size_t k = 0; k < command.operands.size(); ++k) {
      if (command.operands[k].kind != CompiledProgram::Kind::Weight)
        continue;
      MOERT_RETURN_IF_ERROR(acquire(command.operands[k].index));
      slots[k] = weights[command.operands[k].index].data;
    }
    if (each.parameters.tensorMaps != 0)
      if (Status status = encodeTensorMaps(each); !status.isOk())
        return std::move(status).in(commandName(each.command));
    MOERT_RETURN_IF_ERROR(device->run({{&each, 1}, scratchNeeded, {}, {}}));
    for (CompiledProgram::Operand operand : command.operands)
      if (operand.kind == CompiledProgram::Kind::Weight)
        release(operand.index);
  }
  return {};
}

void ProgramRunner::setProfiling(bool on, Timeline *newTimeline) {
  profiling = on || newTimeline;
  timeline = newTimeline;
  measured.assign(measured.size(), {});
}

Result<double> ProgramRunner::runTimed() { return device->runTimed(commandList(/*fetches=*/true)); }

std::vector<ProfileEntry> ProgramRunner::profile() const {
  std::vector<ProfileEntry> result;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (measured[i].launches == 0)
      continue;
    const auto &command = program->source().commands(static_cast<int>(i));
    ProfileEntry entry;
    entry.source = command.has_launch() ? command.launch().source() : "copy";
    entry.kernel = command.has_launch() ? command.launch().kernel() : "copy";
    entry.launches = measured[i].launches;
    entry.seconds = measured[i].seconds;
    entry.flops = measured[i].flops;
    entry.bytesMoved = measured[i].bytesMoved;
    result.push_back(std::move(entry));
  }
  return result;
}

std::uint64_t ProgramRunner::arenaBytes() const {
  std::uint64_t bytes = inputs.memory() + outputs.memory();
  for (const DeviceMemory &memory : arenas)
    bytes += memory.size();
  return bytes;
}

} // namespace moert
