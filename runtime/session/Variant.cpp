#include "runtime/session/Variant.h"

namespace moert {

using moec::bundle::Binding;
using moec::bundle::Manifest;
using moec::bundle::Program;
using moec::bundle::Variant;

namespace {

template <typename Visit>
void forEachWeight(const Program &program, Visit visit) {
  auto look = [&](const Binding &binding) {
    if (binding.what_case() == Binding::kWeight)
      visit(binding.weight());
  };
  for (const moec::bundle::Command &command : program.commands()) {
    for (const Binding &binding : command.launch().bindings())
      look(binding);
    if (command.has_copy()) {
      look(command.copy().from());
      look(command.copy().to());
    }
  }
}

// Reads weights, counts how often each is still needed and frees what is not.
class WeightReader {
public:
  WeightReader(const Bundle &bundle, Device &device, Device::Filler &filler,
               std::vector<DeviceMemory> &memory, std::vector<MemorySpan> &spans,
               const ByteProgress &progress)
      : bundle(bundle), device(device), filler(filler), memory(memory), spans(spans),
        uses(spans.size(), 0), progress(progress) {}

  void use(const Program &program) {
    forEachWeight(program, [&](std::uint32_t index) {
      if (uses[index]++ == 0)
        total += spans[index].bytes;
    });
  }

  Status acquire(std::uint32_t index) {
    if (memory[index].data())
      return {};
    const moec::bundle::Weight &weight = bundle.manifest().weights(static_cast<int>(index));
    MOERT_ASSIGN_OR_RETURN(memory[index], device.allocate(spans[index].bytes,
                                                          "weight " + inQuotes(weight.name())));
    spans[index].data = memory[index].data();
    // Pieces are read in any order, by several threads at once.
    MOERT_RETURN_IF_ERROR(filler.fill(
        memory[index].span(), [this, index](std::uint64_t offset, std::span<std::byte> bytes) {
          return readParts(index, offset, bytes);
        }));
    done += spans[index].bytes;
    if (progress)
      progress(done, total);
    return {};
  }

  void release(std::uint32_t index) {
    if (--uses[index] != 0)
      return;
    memory[index].release();
    spans[index].data = nullptr;
  }

private:
  // Reads from `offset` on of the tensors from `part` on, which lie one behind the other.
  Status readParts(std::uint32_t part, std::uint64_t offset, std::span<std::byte> bytes) const {
    for (; !bytes.empty(); ++part) {
      std::uint64_t size = bundle.manifest().weights(static_cast<int>(part)).bytes();
      if (offset >= size) {
        offset -= size;
        continue;
      }
      std::size_t count = std::min<std::uint64_t>(bytes.size(), size - offset);
      MOERT_RETURN_IF_ERROR(bundle.readWeightPart(part, offset, bytes.first(count)));
      bytes = bytes.subspan(count);
      offset = 0;
    }
    return {};
  }

  const Bundle &bundle;
  Device &device;
  Device::Filler &filler;
  std::vector<DeviceMemory> &memory;
  std::vector<MemorySpan> &spans;
  std::vector<std::uint64_t> uses;
  const ByteProgress &progress;
  std::uint64_t done = 0, total = 0;
};

} // namespace

Result<std::unique_ptr<LoadedVariant>>
LoadedVariant::load(const Bundle &bundle, const Variant &variant, std::shared_ptr<Device> device,
                    bool captureGraphs, const ByteProgress &progress) {
  const Manifest &manifest = bundle.manifest();
  std::string place = bundle.path() + ": variant " + inQuotes(variant.target());
  std::unique_ptr<LoadedVariant> loaded(new LoadedVariant);
  loaded->variant = &variant;
  loaded->device = device;
  loaded->captureGraphs = captureGraphs;
  {
    MOERT_ASSIGN_OR_RETURN(std::string code, bundle.readFile(variant.code()));
    std::string cubin;
    if (!variant.cuda().cubin().empty()) {
      MOERT_ASSIGN_OR_RETURN(cubin, bundle.readFile(variant.cuda().cubin()));
    }
    std::string name = joinPath(bundle.path(), variant.code());
    std::string cubinName = joinPath(bundle.path(), variant.cuda().cubin());
    MOERT_ASSIGN_OR_RETURN(loaded->kernels, device->load({code, name, cubin, cubinName}));
  }
  MOERT_ASSIGN_OR_RETURN(CompiledProgram load,
                         CompiledProgram::create(variant.load(), *loaded->kernels, place));
  for (const Program &entry : variant.entries()) {
    MOERT_ASSIGN_OR_RETURN(CompiledProgram program,
                           CompiledProgram::create(entry, *loaded->kernels, place));
    loaded->entries.push_back(std::move(program));
  }
  loaded->weightMemory.resize(static_cast<std::size_t>(manifest.weights_size()));
  for (int i = 0; i < manifest.weights_size(); ++i) {
    std::uint64_t bytes = 0; // with the weights behind it
    for (int j = i; j <= i + static_cast<int>(manifest.weights(i).joined()); ++j)
      bytes += manifest.weights(j).bytes();
    loaded->weights.push_back({nullptr, bytes});
  }
  for (const moec::bundle::Global &global : variant.globals()) {
    DeviceMemory memory; // zeros, also where the load program writes nothing
    MOERT_RETURN_IF_ERROR(
        device->grow(memory, global.bytes(), "packed weight " + inQuotes(global.name())));
    loaded->globals.push_back({memory.data(), global.bytes()});
    loaded->globalMemory.push_back(std::move(memory));
  }

  MOERT_ASSIGN_OR_RETURN(std::unique_ptr<Device::Filler> filler, device->makeFiller());
  WeightReader reader(bundle, *device, *filler, loaded->weightMemory, loaded->weights, progress);
  reader.use(variant.load());
  for (const Program &entry : variant.entries())
    reader.use(entry);
  ProgramRunner runner(load, loaded->weights, loaded->globals, *device, false);
  if (Status status = runner.prepare({}, {}); !status.isOk())
    return std::move(status).in(place + ": load");
  MOERT_RETURN_IF_ERROR(
      runner.runStreaming([&](std::uint32_t index) { return reader.acquire(index); },
                          [&](std::uint32_t index) { reader.release(index); }));
  Status status;
  for (const Program &entry : variant.entries())
    forEachWeight(entry, [&](std::uint32_t index) {
      if (status.isOk())
        status = reader.acquire(index);
    });
  MOERT_RETURN_IF_ERROR(std::move(status));
  if (Status finished = device->synchronise(); !finished.isOk())
    return std::move(finished).in(place + ": load");
  return loaded;
}

const CompiledProgram *LoadedVariant::entry(std::string_view name) const {
  for (const CompiledProgram &each : entries)
    if (each.source().name() == name)
      return &each;
  return nullptr;
}

MemoryUse LoadedVariant::memory() const {
  MemoryUse use;
  for (const DeviceMemory &memory : weightMemory)
    use.weights += memory.size();
  for (const DeviceMemory &memory : globalMemory)
    use.globals += memory.size();
  return use;
}

} // namespace moert
