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
/// features switched by "+name" and "-name": "cpu:sapphirerapids,-amx-bf16"; or an NVIDIA GPU: "cuda:sm_80", "cuda:sm_90",
/// "cuda:sm_90a" (with the instructions of Hopper alone), "cuda:sm_100".
struct TargetDescription {
  std::string name;                   ///< canonical: "cpu:" and the micro-architecture, then switched features; "cuda:sm_90a"
  std::string cpu;                    ///< LLVM's name of the micro-architecture or GPU: "sapphirerapids", "sm_90a"
  std::vector<std::string> features;  ///< LLVM's feature names that are on, sorted; none for a GPU
  /// Ten times the compute capability (90 for sm_90a) of a GPU, 0 for a CPU.
  unsigned computeCapability = 0;
  /// Kernels must give a sequence the same bits whatever else is in the batch.
  bool batchInvariant = false;

  bool isCPU() const { return computeCapability == 0; }
  bool isCUDA() const { return computeCapability != 0; }
  /// Code for exactly this GPU generation ("sm_90a"), which later ones do not run.
  bool isArchitectureSpecific() const { return isCUDA() && StringRef(cpu).ends_with("a"); }

  bool has(StringRef feature) const;
  /// Width of the registers that kernels should use, in bytes: 64, 32 or 16 (a GPU thread's widest access).
  unsigned getVectorBytes() const;

  /// Parses `name`; on failure `error` says what is wrong and which names there are.
  static FailureOr<TargetDescription> parse(StringRef name, std::string &error);

  /// The attributes "moec.target" and "moec.batch_invariant" of a module carry the description through the phases.
  static FailureOr<TargetDescription> get(ModuleOp module);
  static bool isSet(ModuleOp module);
  void set(ModuleOp module) const;
};

} // namespace mlir::moec

#endif // MOEC_TARGET_TARGETDESCRIPTION_H
