//===- StrategyKernel.h - one op with a strategy as a kernel to run in a test -----------------===//

#ifndef MOEC_TEST_UNIT_KERNELS_STRATEGYKERNEL_H
#define MOEC_TEST_UNIT_KERNELS_STRATEGYKERNEL_H

#include "test/Unit/KernelHarness.h"

#include <functional>
#include <map>
#include <memory>

namespace moec_test {

/// A kernel of one op that a strategy builds. The text of its function depends on the number of
/// tokens, "?" or digits: compiled once for "?", and asked about workgroups and scratch for the
/// number at hand.
class StrategyKernel {
public:
  using TextMaker = std::function<std::string(std::string tokens)>;

  StrategyKernel(TextMaker makeText, std::string target = "cpu", HarnessOptions options = {});

  bool isReady() const { return harness->isReady(); }
  const std::string &getError() const { return harness->getError(); }
  /// Runs the function "kernel".
  bool run(int64_t tokens, const std::vector<Binding> &bindings) const;

  struct LaunchSize {
    int64_t workgroups = -1, scratchBytes = -1; ///< negative: not known
  };
  LaunchSize getLaunchSize(int64_t tokens) const;
  const std::string &getSharedObject() const { return harness->getSharedObject(); }

private:
  LaunchSize computeLaunchSize(int64_t tokens) const;

  TextMaker makeText;
  std::string target;
  mutable std::map<int64_t, LaunchSize> launchSizes; ///< of the numbers of tokens so far
  std::unique_ptr<KernelHarness> harness;
};

/// The text of a kernel function named "kernel". `inputs` and `outputs` are memref types, "cache"
/// operands are given by their cache type; the op text uses %0, %1, ... for the inputs and must
/// define one value for each output, %r0, %r1, ...
struct KernelText {
  struct Argument {
    std::string storage; ///< memref type
    std::string value;   ///< type of the op's operand or result
  };
  std::vector<Argument> inputs, outputs;
  std::string op;

  std::string print() const;
  /// The op in a function of values named `name`, for the reference interpreter.
  std::string printFunction(const std::string &name) const;
};

/// An argument of tensor type: "?x4xf32".
KernelText::Argument tensorArgument(const std::string &shape);

} // namespace moec_test

#endif // MOEC_TEST_UNIT_KERNELS_STRATEGYKERNEL_H
