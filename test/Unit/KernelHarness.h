//===- KernelHarness.h - compiles and runs kernel functions in a test -------------------------===//
//
// From the text of a module of kernel functions through phases kernel and target to a loaded shared
// object, and single kernels run over all their workgroups:
//
//   KernelHarness harness(text, "cpu:x86-64-v3");
//   ASSERT_TRUE(harness.isReady()) << harness.getError();
//   harness.run("add", {{x.data(), {tokens}}, {y.data(), {tokens}}, {out.data(), {tokens}}},
//   workgroups);
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_TEST_UNIT_KERNELHARNESS_H
#define MOEC_TEST_UNIT_KERNELHARNESS_H

#include "moec/Target/TargetDescription.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include "runtime/abi/kernel_abi.h"

#include <map>
#include <string>
#include <vector>

namespace moec_test {

struct HarnessOptions {
  /// Replace AMX and AVX-512 intrinsics by generic code, so that their strategies run on any
  /// machine. The target's name then says what strategies may use; machine code is made for this
  /// machine.
  bool emulate = false;
  bool batchInvariant = false;
};

/// One buffer of a launch and the sizes of the dynamic dimensions of its memref, outermost first.
struct Binding {
  void *data;
  std::vector<int64_t> dimensions = {};
};

class KernelHarness {
public:
  /// Compiles `text`. The module's target attribute is set to `target`. Code for a GPU runs on this
  /// machine: see BlockEmulation.h.
  KernelHarness(llvm::StringRef text, llvm::StringRef target, HarnessOptions options = {});
  ~KernelHarness();
  KernelHarness(const KernelHarness &) = delete;
  KernelHarness &operator=(const KernelHarness &) = delete;

  /// Whether kernels can be run: compiled, loaded, and this machine has what the target needs.
  bool isReady() const { return table != nullptr; }
  /// The diagnostics when it is not.
  const std::string &getError() const { return error; }
  /// The bytes of the shared object, empty when compiling failed.
  const std::string &getSharedObject() const { return object; }
  /// The module after phase kernel, as text.
  const std::string &getKernelPhase() const { return kernelPhase; }

  /// Runs the workgroups of `kernel` one after the other, with a scratch of `scratchBytes` filled
  /// with 0xCD. Every buffer's guard is the caller's business. False if there is no such kernel, or
  /// if the threads of a GPU's block wait for each other forever.
  bool run(llvm::StringRef kernel, const std::vector<Binding> &bindings, int64_t workgroups = 1,
           size_t scratchBytes = size_t(1) << 20) const;

private:
  bool compile(llvm::StringRef text, llvm::StringRef target);
  bool load();

  HarnessOptions options;
  std::string error, object, kernelPhase;
  std::map<std::string, int64_t> threads; ///< of a GPU's blocks, by kernel
  void *library = nullptr;
  int file = -1;
  const moert_kernel_table *table = nullptr;
};

/// Whether this machine can run code for `target`.
bool canRun(llvm::StringRef target);

} // namespace moec_test

#endif // MOEC_TEST_UNIT_KERNELHARNESS_H
