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
  static Result<std::unique_ptr<LoadedVariant>>
  load(const Bundle &bundle, const moec::bundle::Variant &variant, std::shared_ptr<Device> device,
       bool captureGraphs, const ByteProgress &progress);

  const moec::bundle::Variant &source() const { return *variant; }
  const CompiledProgram *entry(std::string_view name) const; // null: none
  ProgramRunner runner(const CompiledProgram &program) const {
    return {program, weights, globals, *device, captureGraphs};
  }
  MemoryUse memory() const;

private:
  LoadedVariant() = default;
  const moec::bundle::Variant *variant = nullptr;
  std::shared_ptr<Device> device;
  bool captureGraphs = true;
  std::unique_ptr<KernelSet> kernels;
  std::vector<CompiledProgram> entries;
  std::vector<DeviceMemory> weightMemory, globalMemory;
  std::vector<MemorySpan> weights,
      globals; // by index; a weight that was only packed has no address
};

} // namespace moert

#endif
