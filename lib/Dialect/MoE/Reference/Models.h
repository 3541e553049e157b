// How the external models of the interpreter are made and registered, one function for each family.
#ifndef MOEC_LIB_DIALECT_MOE_REFERENCE_MODELS_H
#define MOEC_LIB_DIALECT_MOE_REFERENCE_MODELS_H

#include "moec/Dialect/MoE/Reference/Interpreter.h"

namespace mlir::moec::moe {

void registerArithModels(DialectRegistry &registry);
void registerMathModels(DialectRegistry &registry);
void registerLinalgModels(DialectRegistry &registry);
void registerTensorModels(DialectRegistry &registry);
void registerControlFlowModels(DialectRegistry &registry);
void registerMoEModels(DialectRegistry &registry);

/// `function` is a lambda without captures: Operation * -> ScalarFunction.
template <typename Op, typename Function>
struct ElementwiseModel
    : ReferenceEvaluationOpInterface::ExternalModel<ElementwiseModel<Op, Function>, Op> {
  ScalarFunction getScalarFunction(Operation *op) const { return Function{}(cast<Op>(op)); }
};

/// `function` is a lambda without captures: (Op, ReferenceFrame &) -> LogicalResult.
template <typename Op, typename Function>
struct EvaluationModel
    : ReferenceEvaluationOpInterface::ExternalModel<EvaluationModel<Op, Function>, Op> {
  LogicalResult evaluate(Operation *op, ReferenceFrame &frame) const {
    return Function{}(cast<Op>(op), frame);
  }
};

template <typename Op, typename Function>
void attachElementwise(MLIRContext *context, Function) {
  Op::template attachInterface<ElementwiseModel<Op, Function>>(*context);
}

template <typename Op, typename Function>
void attachEvaluation(MLIRContext *context, Function) {
  Op::template attachInterface<EvaluationModel<Op, Function>>(*context);
}

/// Elementwise functions of doubles. `compute` has no captures.
template <typename Compute>
ScalarFunction unaryReal(Compute compute) {
  return [compute](const Scalar *x) { return Scalar::fromReal(compute(x[0].real)); };
}
template <typename Compute>
ScalarFunction binaryReal(Compute compute) {
  return [compute](const Scalar *x) { return Scalar::fromReal(compute(x[0].real, x[1].real)); };
}

} // namespace mlir::moec::moe

#endif // MOEC_LIB_DIALECT_MOE_REFERENCE_MODELS_H
