// One variant of a bundle in memory: its code, the weights that its entries read, and its globals.
#ifndef MOERT_SESSION_VARIANT_H
#define MOERT_SESSION_VARIANT_H

#include "runtime/session/Program.h"

#include <memory>
#include <string_view>
#include <vector>

namespace moert {

class LoadedVariant {
public:
  // Reads the code and the weights and runs the load program.
  static Result<std::unique_ptr<LoadedVariant>> load(const Bundle &bundle,
                                                     const moec::bundle::Variant &variant,
                                                     ThreadPool &pool,
                                                     const ByteProgress &progress);

  const moec::bundle::Variant &source() const { return *variant; }
  const CompiledProgram *entry(std::string_view name) const; // null: none
  ProgramRunner runner(const CompiledProgram &program) const { return {program, weights, globals}; }
  MemoryUse memory() const;

private:
  LoadedVariant() = default;
  const moec::bundle::Variant *variant = nullptr;
  std::unique_ptr<KernelLibrary> library;
  std::vector<CompiledProgram> entries;
  std::vector<AlignedMemory> weightMemory, globalMemory;
  std::vector<MemorySpan> weights,
      globals; // by index; a weight that was only packed has no address
};

// The variant that `target` names, or with an empty one the first that this CPU can run.
Result<const moec::bundle::Variant *> chooseVariant(const moec::bundle::Manifest &manifest,
                                                    std::string_view target,
                                                    std::string_view place);

} // namespace moert

#endif
