//===- RecurrentKernel.h - an op over a state, compiled and interpreted side by side ----------===//

#ifndef MOEC_TEST_UNIT_KERNELS_RECURRENTKERNEL_H
#define MOEC_TEST_UNIT_KERNELS_RECURRENTKERNEL_H

#include "Interpreted.h"
#include "StrategyKernel.h"
#include "TestBuffer.h"

#include <functional>

namespace moec_test {

/// An op with the operands `operands`, then a state, positions, sequence offsets and state slots.
struct RecurrentCase {
  struct Operand {
    std::string type;
    std::vector<int64_t> shape; ///< of one token's part, or of the whole of a weight
    std::function<double(std::mt19937 &)> draw;
    bool isWeight = false;
  };
  std::vector<Operand> operands;
  Operand result;
  std::string stateType;
  std::vector<int64_t> stateShape;
  /// The op up to the colon, with the strategy for CPUs: 'moe.x %0 over %1 at (%2, %3, %4)
  /// {strategy = "cpu.x"}'.
  std::string op;
  /// The types between the colon and the state's, with a comma behind each.
  std::string types;
  bool namesResult; ///< whether the op's types end in that of the result

  KernelText describe(const std::string &sequences) const;
  std::string getStateText() const;
};

/// Tokens of one sequence in a step, at positions `first`, `first + 1`, ...
struct SequencePiece {
  int sequence; ///< says what its tokens are
  int slot;
  int first, count;
};
using Step = std::vector<SequencePiece>;

/// "cpu_x86_64" for a test of target "cpu:x86-64".
std::string getTargetName(const testing::TestParamInfo<const char *> &info);

double drawNormal(std::mt19937 &random);
int64_t countElements(const std::vector<int64_t> &shape);

/// The state of both, and steps on it. What a sequence has at a position depends on nothing else.
class RecurrentKernel {
public:
  /// For a GPU with the strategy for GPUs, which has the same name but for `suffix` at its end.
  RecurrentKernel(const RecurrentCase &shape, int64_t slots, std::string target = "cpu",
                  std::string suffix = "");

  bool isReady() const { return kernel.isReady(); }
  const std::string &getError() const { return kernel.getError(); }

  /// The results of the compiled op, row by row.
  TestBuffer run(const Step &step);
  /// What the interpreter makes of it, on a state of its own.
  mlir::moec::moe::ReferenceTensor interpret(const Step &step);
  /// Runs both and compares results and states: to the rounding of their types and, relative to the
  /// largest number, to `tolerance`. -> the largest relative difference.
  double compare(const Step &step, double tolerance);

  struct Inputs {
    std::vector<TestBuffer> operands;
    std::vector<int32_t> positions, offsets, slots;
  };
  Inputs makeInputs(const Step &step) const;

  TestBuffer state; ///< all NaN at first
  /// Tables that are used instead of a step's own.
  std::vector<int32_t> forcedOffsets, forcedSlots;

private:
  RecurrentCase shape;
  int64_t slots;
  StrategyKernel kernel;
  Interpreted reference;
  std::shared_ptr<mlir::moec::moe::ReferenceState> referenceState;
};

} // namespace moec_test

#endif // MOEC_TEST_UNIT_KERNELS_RECURRENTKERNEL_H
