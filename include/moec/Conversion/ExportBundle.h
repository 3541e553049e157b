//===- ExportBundle.h - the planned program and its code, written as a bundle -------------------===//

#ifndef MOEC_CONVERSION_EXPORTBUNDLE_H
#define MOEC_CONVERSION_EXPORTBUNDLE_H

#include "moec/Target/TargetDescription.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace mlir::moec {

/// One variant: a module that still holds the plan.programs (any phase from plan on), and the shared object or the PTX of its
/// kernels.
struct BundleVariant {
  ModuleOp module;
  TargetDescription target;
  std::string code;
  std::string machineCode; ///< of a GPU, beside its PTX; may be empty
};

struct ExportBundleOptions {
  std::string path;
  bool copyWeights = false;
};

/// Writes the bundle under a temporary name, syncs and renames it. Problems are reported at the first module's location.
LogicalResult exportBundle(ArrayRef<BundleVariant> variants, const ExportBundleOptions &options);

/// The attribute of a module that holds its text at phase moe, for the reference interpreter.
constexpr llvm::StringLiteral referenceTextAttr = "moec.reference";

} // namespace mlir::moec

#endif // MOEC_CONVERSION_EXPORTBUNDLE_H
