#include "runtime/session/Variant.h"

#include "runtime/base/CheckedMath.h"
#include "runtime/device/cpu/CpuFeatures.h"

#include <algorithm>
#include <atomic>

namespace moert {

using moec::bundle::Binding;
using moec::bundle::Manifest;
using moec::bundle::Program;
using moec::bundle::Variant;

namespace {

std::string missingFeatures(const Variant &variant) {
  std::string missing;
  if (variant.target() != "cpu" && variant.target().rfind("cpu:", 0) != 0)
    return "a device other than the CPU";
  for (const std::string &feature : variant.cpu_features())
    if (!hasCpuFeature(feature))
      missing += (missing.empty() ? "" : ", ") + feature;
  return missing;
}

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
  WeightReader(const Bundle &bundle, std::vector<AlignedMemory> &memory,
               std::vector<MemorySpan> &spans, const ByteProgress &progress)
      : bundle(bundle), memory(memory), spans(spans), uses(spans.size(), 0), progress(progress) {}

  void use(const Program &program) {
    forEachWeight(program, [&](std::uint32_t index) {
      if (uses[index]++ == 0)
        total += spans[index].bytes;
    });
  }

  Status acquire(std::uint32_t index, ThreadPool::Lease &lease) {
    if (memory[index].data())
      return {};
    const moec::bundle::Weight &weight = bundle.manifest().weights(static_cast<int>(index));
    MOERT_ASSIGN_OR_RETURN(memory[index], AlignedMemory::allocate(
                                              weight.bytes(), "weight " + inQuotes(weight.name())));
    spans[index].data = memory[index].data();
    MOERT_RETURN_IF_ERROR(read(index, lease));
    done += weight.bytes();
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
  // In pieces, by all threads: one alone does not reach the speed of a fast disk or of the page
  // cache.
  Status read(std::uint32_t index, ThreadPool::Lease &lease) {
    constexpr std::uint64_t piece = std::uint64_t(4) << 20;
    std::span<std::byte> bytes = memory[index].span();
    auto pieces = static_cast<std::uint32_t>((bytes.size() + piece - 1) / piece);
    std::vector<Status> results(pieces);
    lease.forEach(pieces, [&](std::uint32_t i) {
      std::uint64_t offset = i * piece;
      results[i] = bundle.readWeightPart(
          index, offset, bytes.subspan(offset, std::min(piece, bytes.size() - offset)));
    });
    for (Status &result : results)
      MOERT_RETURN_IF_ERROR(std::move(result));
    return {};
  }

  const Bundle &bundle;
  std::vector<AlignedMemory> &memory;
  std::vector<MemorySpan> &spans;
  std::vector<std::uint64_t> uses;
  const ByteProgress &progress;
  std::uint64_t done = 0, total = 0;
};

} // namespace

std::vector<VariantFit> fitVariants(const Manifest &manifest) {
  std::vector<VariantFit> result;
  for (const Variant &variant : manifest.variants())
    result.push_back({variant.target(), missingFeatures(variant)});
  return result;
}

Result<const Variant *> chooseVariant(const Manifest &manifest, std::string_view target,
                                      std::string_view place) {
  std::string reasons;
  for (const Variant &variant : manifest.variants()) {
    if (!target.empty() && variant.target() != target) {
      reasons += (reasons.empty() ? "" : ", ") + variant.target();
      continue;
    }
    std::string missing = missingFeatures(variant);
    if (missing.empty())
      return &variant;
    if (!target.empty())
      return Status(ErrorCode::Unsupported,
                    "this machine cannot run the variant " + inQuotes(target) + ": it lacks " +
                        missing,
                    std::string(place));
    reasons += "\n  " + variant.target() + " needs " + missing;
  }
  if (!target.empty())
    return Status(ErrorCode::NotFound,
                  "the bundle has no variant " + inQuotes(target) + "; it has " + reasons,
                  std::string(place));
  return Status(ErrorCode::Unsupported, "no variant of the bundle runs on this machine:" + reasons,
                std::string(place), "compile the model for this machine (--target=cpu)");
}

Result<std::unique_ptr<LoadedVariant>> LoadedVariant::load(const Bundle &bundle,
                                                           const Variant &variant, ThreadPool &pool,
                                                           const ByteProgress &progress) {
  const Manifest &manifest = bundle.manifest();
  std::string place = bundle.path() + ": variant " + inQuotes(variant.target());
  std::unique_ptr<LoadedVariant> loaded(new LoadedVariant);
  loaded->variant = &variant;
  {
    MOERT_ASSIGN_OR_RETURN(std::string code, bundle.readFile(variant.code()));
    MOERT_ASSIGN_OR_RETURN(loaded->library,
                           KernelLibrary::load(code, joinPath(bundle.path(), variant.code())));
  }
  MOERT_ASSIGN_OR_RETURN(CompiledProgram load,
                         CompiledProgram::create(variant.load(), *loaded->library, place));
  for (const Program &entry : variant.entries()) {
    MOERT_ASSIGN_OR_RETURN(CompiledProgram program,
                           CompiledProgram::create(entry, *loaded->library, place));
    loaded->entries.push_back(std::move(program));
  }
  loaded->weightMemory.resize(static_cast<std::size_t>(manifest.weights_size()));
  for (const moec::bundle::Weight &weight : manifest.weights())
    loaded->weights.push_back({nullptr, weight.bytes()});
  for (const moec::bundle::Global &global : variant.globals()) {
    MOERT_ASSIGN_OR_RETURN(
        AlignedMemory memory,
        AlignedMemory::allocate(global.bytes(), "packed weight " + inQuotes(global.name())));
    loaded->globals.push_back({memory.data(), global.bytes()});
    loaded->globalMemory.push_back(std::move(memory));
  }

  ThreadPool::Lease lease(pool);
  WeightReader reader(bundle, loaded->weightMemory, loaded->weights, progress);
  reader.use(variant.load());
  for (const Program &entry : variant.entries())
    reader.use(entry);
  ProgramRunner runner(load, loaded->weights, loaded->globals);
  if (Status status = runner.prepare({}, {}); !status.isOk())
    return std::move(status).in(place + ": load");
  MOERT_RETURN_IF_ERROR(runner.runStreaming(
      lease, [&](std::uint32_t index) { return reader.acquire(index, lease); },
      [&](std::uint32_t index) { reader.release(index); }));
  Status status;
  for (const Program &entry : variant.entries())
    forEachWeight(entry, [&](std::uint32_t index) {
      if (status.isOk())
        status = reader.acquire(index, lease);
    });
  if (!status.isOk())
    return status;
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
  for (const AlignedMemory &memory : weightMemory)
    use.weights += memory.size();
  for (const AlignedMemory &memory : globalMemory)
    use.globals += memory.size();
  return use;
}

} // namespace moert
