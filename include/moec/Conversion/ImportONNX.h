//===- ImportONNX.h - from an .onnx file to a module
//--------------------------------------------===//
//
// The graph becomes one func.func on tensors, made of upstream ops and, where a node means exactly
// that, of moe ops. Weights stay in their files, by reference (moe.weight). Nothing of ONNX is left
// in the result but the names.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTONNX_H
#define MOEC_CONVERSION_IMPORTONNX_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <vector>

namespace mlir::moec {

/// How the inputs and outputs of a language model are called. An empty name is looked for by the
/// usual names
/// (`input_ids`, `position_ids`, `past_key_values.N.key`, `present.N.key`, `logits`) and then by
/// structure.
struct ONNXLanguageModelNames {
  std::string tokens, positions, logits;
  /// Per layer, keys before values: input and output names.
  std::vector<std::string> past, present;
};

struct ImportONNXOptions {
  enum class Interface {
    /// A language model when its inputs and outputs are recognised, else plain tensors.
    Automatic,
    /// Inputs and outputs stay as they are.
    Tensors,
    /// An error when no language model is recognised.
    LanguageModel,
  };
  Interface interface = Interface::Automatic;
  ONNXLanguageModelNames names;
  /// Folder of tokenizer.json and of the files that name special tokens. Empty: beside the graph.
  std::string tokenizerFolder;
  /// Type of activations and caches of a language model.
  enum class Precision {
    Model, // the file's
    F32,
    BF16,
  };
  Precision precision = Precision::Model;
  /// Tokens in one block of a paged cache.
  int64_t blockTokens = 16;
  /// Values for dimensions that the file names.
  llvm::StringMap<int64_t> dimensions;
};

/// On the imported function: a dictionary that says which argument and result plays which part in a
/// language model. The raising passes turn such a function into a ragged step.
constexpr llvm::StringLiteral onnxLanguageModelAttr = "moe.onnx_language_model";
/// On arguments and results: the name in the file.
constexpr llvm::StringLiteral onnxNameAttr = "moe.name";
/// On arguments: the names of the dynamic dimensions.
constexpr llvm::StringLiteral onnxDimensionsAttr = "moe.dims";
/// On small moe.weight ops: the values, for passes that must know them. The reference stays what
/// counts.
constexpr llvm::StringLiteral onnxConstantValueAttr = "moe.constant_value";

/// On the module: the type that activations get after raising, when it is not the file's.
constexpr llvm::StringLiteral onnxActivationTypeAttr = "moe.activation_type";

/// Imports the file. Every problem of the file is in one diagnostic.
FailureOr<OwningOpRef<ModuleOp>> importONNX(StringRef path, const ImportONNXOptions &options,
                                            MLIRContext *context);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTONNX_H
