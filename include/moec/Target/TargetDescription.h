//===- TargetDescription.h - what a target machine can do -------------------------------------===//

#ifndef MOEC_TARGET_TARGETDESCRIPTION_H
#define MOEC_TARGET_TARGETDESCRIPTION_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace mlir::moec {

/// A CPU micro-architecture, from a name such as "cpu" (this machine), "cpu:x86-64-v3", "cpu:sapphirerapids", with single
/// features switched by "+name" and "-name": "cpu:sapphirerapids,-amx-bf16".
struct TargetDescription {
  std::string name;                   ///< canonical: "cpu:" and the micro-architecture, then switched features
  std::string cpu;                    ///< LLVM's name of the micro-architecture
  std::vector<std::string> features;  ///< LLVM's feature names that are on, sorted
  /// Kernels must give a sequence the same bits whatever else is in the batch.
  bool batchInvariant = false;

  bool has(StringRef feature) const;
  /// Width of the registers that kernels should use, in bytes: 64, 32 or 16.
  unsigned getVectorBytes() const;

  /// Parses `name`; on failure `error` says what is wrong and which names there are.
  static FailureOr<TargetDescription> parse(StringRef name, std::string &error);

  /// The attributes "moec.target" and "moec.batch_invariant" of a module carry the description through the phases.
  static FailureOr<TargetDescription> get(ModuleOp module);
  void set(ModuleOp module) const;
};

} // namespace mlir::moec

#endif // MOEC_TARGET_TARGETDESCRIPTION_H
