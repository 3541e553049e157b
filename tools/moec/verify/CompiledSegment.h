// A piece of a model's program, compiled for itself and run step by step.
#ifndef MOEC_TOOLS_MOEC_VERIFY_COMPILEDSEGMENT_H
#define MOEC_TOOLS_MOEC_VERIFY_COMPILEDSEGMENT_H

#include "tools/moec/DiagnosticStatus.h"

#include "moec/Dialect/MoE/Reference/ReferenceValue.h"

#include "runtime/session/Variant.h"

#include "mlir/IR/BuiltinOps.h"

namespace moec::verify {

// How the bundle was compiled, and where it runs.
struct Target {
  std::string name; // of the bundle's variant
  bool batchInvariant = false;
  bool ptxOnly = false;
  unsigned threads = 0;
  std::string device;
};

class CompiledSegment {
public:
  // Compiles the function of the module into a bundle in `folder` and loads it. The weights that it names must be readable below
  // the module's moe.weight_root.
  static moert::Result<std::unique_ptr<CompiledSegment>> create(mlir::ModuleOp module, const Target &target,
                                                                const std::string &folder, DiagnosticStatus &diagnostics);

  // One step. Arguments are the function's; caches and states say by their size how large this side's own must be, which keep
  // what earlier steps wrote.
  moert::Result<std::vector<mlir::moec::moe::ReferenceTensor>>
  run(mlir::ArrayRef<mlir::moec::moe::ReferenceValue> arguments);

private:
  std::shared_ptr<const moert::Model> model;
  std::unique_ptr<moert::ProgramRunner> runner;
  const moert::CompiledProgram *program = nullptr;
  mlir::SmallVector<unsigned> inputs, states; // which argument each is
  mlir::SmallVector<mlir::Type> resultTypes;
  std::vector<moert::DeviceMemory> memory;
};

} // namespace moec::verify

#endif
