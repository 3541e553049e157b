// A piece of a model's program, compiled for itself and run step by step.
#ifndef MOEC_TOOLS_MOEC_VERIFY_COMPILEDSEGMENT_H
#define MOEC_TOOLS_MOEC_VERIFY_COMPILEDSEGMENT_H

#include "tools/moec/DiagnosticStatus.h"

#include "moec/Dialect/MoE/Reference/ReferenceValue.h"

#include "runtime/session/Variant.h"

#include "mlir/IR/BuiltinOps.h"

#include <map>

namespace moec::verify {

// How the bundle was compiled, and where it runs.
struct Target {
  std::string name; // of the bundle's variant
  bool batchInvariant = false;
  bool ptxOnly = false;
  unsigned threads = 0;
  std::string device;
};

// Compiles into bundles in a folder. Pieces that are alike but for their weights, as most layers
// are, are compiled once: the others get the same code and a manifest with their own weights.
class SegmentCompiler {
public:
  SegmentCompiler(const Target &target, std::string folder, DiagnosticStatus &diagnostics)
      : target(target), folder(std::move(folder)), diagnostics(diagnostics) {}

  // The bundle of the module's function. The weights that it names must be readable below the
  // module's moe.weight_root.
  moert::Result<std::string> compile(mlir::ModuleOp module);
  const Target &getTarget() const { return target; }

private:
  // A tensor of a file, in the order in which the program names them.
  struct WeightPart {
    std::string name, file;
    std::uint64_t offset = 0, bytes = 0;
  };
  struct Compiled {
    std::string bundle;
    std::vector<WeightPart> weights;
  };
  static std::string makeKey(mlir::ModuleOp module, std::vector<WeightPart> &weights);
  moert::Status replaceWeights(const Compiled &known, const std::vector<WeightPart> &weights,
                               const std::string &path);

  const Target &target;
  std::string folder;
  DiagnosticStatus &diagnostics;
  std::map<std::string, Compiled> known; // by text without weights
  int count = 0;
};

class CompiledSegment {
public:
  // Compiles the function of the module and loads it.
  static moert::Result<std::unique_ptr<CompiledSegment>> create(mlir::ModuleOp module,
                                                                SegmentCompiler &compiler);

  // One step. Arguments are the function's; caches and states say by their size how large this
  // side's own must be, which keep what earlier steps wrote.
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
