//===- ImportCheckpoint.h - from a checkpoint folder to a module
//--------------------------------===//
//
// config.json says what the model is, the headers of the safetensors files say where its weights
// lie. No weight is read. The module is of phase moe: one ragged step of a language model as a
// func.func, with paged caches.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Support/LLVM.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlir::moec {

struct ImportCheckpointOptions {
  enum class Precision {
    /// What config.json names, else the type of the embedding; float16 models compute in f32.
    Model,
    F32,
    BF16,
  };
  /// Element type of activations and caches. Sums, norms and routing are f32 in any case.
  Precision precision = Precision::Model;
  /// Tokens in one block of a paged cache.
  int64_t blockTokens = 16;
  /// Names of tensors that the model may leave unused; '*' stands for any text.
  std::vector<std::string> allowUnused;
  /// What config.json should say instead: "FIELD=VALUE", "GROUP.FIELD=VALUE"; "+FIELD=VALUE" for a
  /// field that it does not have. Values are JSON, or else strings.
  std::vector<std::string> settings;
  /// Of all layers only these, the first and the last one counted from 0: between the embedding and
  /// the head, whose results then mean nothing but take their time.
  std::optional<std::pair<int64_t, int64_t>> layers;
};

/// Imports the folder. Every problem of it is in one diagnostic.
FailureOr<OwningOpRef<ModuleOp>>
importCheckpoint(StringRef folder, const ImportCheckpointOptions &options, MLIRContext *context);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_H
