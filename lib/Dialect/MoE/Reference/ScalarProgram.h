// The body of a linalg op as a list of scalar functions.
#ifndef MOEC_LIB_DIALECT_MOE_REFERENCE_SCALARPROGRAM_H
#define MOEC_LIB_DIALECT_MOE_REFERENCE_SCALARPROGRAM_H

#include "moec/Dialect/MoE/Reference/Interpreter.h"

namespace mlir::moec::moe {

/// Runs the body once for each point of the iteration space. Looking every value up in the frame
/// would take a hundred times as long.
class ScalarProgram {
public:
  /// Nothing when the body has an op that is neither elementwise nor linalg.index nor
  /// tensor.extract, such as control flow. Ops in `exact` are not rounded.
  static std::optional<ScalarProgram> compile(Block &body, ReferenceFrame &frame,
                                              const DenseSet<Operation *> &exact);

  /// The block arguments of the next run.
  MutableArrayRef<Scalar> getArguments() {
    return MutableArrayRef(registers).take_front(arguments);
  }

  /// Runs the body at a point. Emits a diagnostic when a tensor.extract is out of bounds.
  LogicalResult run(ArrayRef<int64_t> point);

  /// What the last run gave.
  Scalar getResult(unsigned index) const { return registers[results[index]]; }

private:
  struct Instruction {
    Operation *op;
    ScalarFunction function;                 // of elementwise ops
    std::optional<ScalarType> rounds;        // to what the result is rounded
    const ReferenceTensor *tensor = nullptr; // of tensor.extract
    int64_t loop = -1;                       // of linalg.index
    SmallVector<unsigned, 3> operands;
    unsigned result = 0;
  };

  LogicalResult extract(const Instruction &instruction);

  size_t arguments = 0;
  std::vector<Scalar> registers;
  std::vector<Scalar> operands; // of one instruction, side by side
  std::vector<Instruction> instructions;
  SmallVector<unsigned> results;
};

} // namespace mlir::moec::moe

#endif // MOEC_LIB_DIALECT_MOE_REFERENCE_SCALARPROGRAM_H
