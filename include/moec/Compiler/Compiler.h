//===- Compiler.h - from a model to a bundle, or to any phase between ---------------------------===//

#ifndef MOEC_COMPILER_COMPILER_H
#define MOEC_COMPILER_COMPILER_H

#include "moec/Conversion/ImportCheckpoint.h"
#include "moec/Conversion/ImportONNX.h"
#include "moec/Transforms/Pipelines.h"

#include "mlir/IR/MLIRContext.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::moec {

/// The states of a program on its way to a bundle; each prints as text that the next one accepts.
enum class Phase { Moe, Opt, Plan, Kernel, Target, Bundle };

/// "moe", "opt", "plan", "kernel", "target", "bundle".
std::optional<Phase> parsePhase(StringRef name);
StringRef getPhaseName(Phase phase);

struct CompileOptions {
  /// A checkpoint folder, an .onnx file or an .mlir file.
  std::string input;
  /// The bundle, or for an earlier phase a text file ("-": standard output).
  std::string output;
  /// Target names; each gives one variant of the bundle, in order of preference. One only when from or to is later than moe
  /// and earlier than the bundle.
  std::vector<std::string> targets = {"cpu"};
  bool batchInvariant = false;
  bool ptxOnly = false; ///< no machine code for GPUs, even where ptxas is found
  Phase from = Phase::Moe;
  Phase to = Phase::Bundle;
  /// Folder that receives the text of every phase; empty: none.
  std::string dumpFolder;
  /// Weights are copied into the bundle instead of referred to.
  bool copyWeights = false;
  /// Folder of tokenizer.json, for inputs that have none beside them.
  std::string tokenizerFolder;
  ImportCheckpointOptions checkpoint;
  ImportONNXOptions onnx;
  PipelineOptions pipeline;
  /// Print the time that each pass took to standard error.
  bool timing = false;
};

/// Compiles. Problems are diagnostics of the context; nothing is written unless all went well.
LogicalResult compile(const CompileOptions &options, MLIRContext &context);

} // namespace mlir::moec

#endif // MOEC_COMPILER_COMPILER_H
