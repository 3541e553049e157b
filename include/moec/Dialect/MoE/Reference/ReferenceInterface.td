// How the interpreter asks an op for its results.
#ifndef MOEC_DIALECT_MOE_REFERENCE_REFERENCEINTERFACE_TD
#define MOEC_DIALECT_MOE_REFERENCE_REFERENCEINTERFACE_TD

include "mlir/IR/OpBase.td"

def ReferenceEvaluationOpInterface : OpInterface<"ReferenceEvaluationOpInterface"> {
  let cppNamespace = "::mlir::moec::moe";
  let description = [{
    An op that the reference interpreter can compute. All ops get it from outside, by external models: what the interpreter
    does is a second, independent wording of the ops' descriptions.

    Elementwise ops on numbers give `getScalarFunction` alone: it serves scalars, tensors and the bodies of linalg ops.
  }];
  let methods = [
    InterfaceMethod<"Computes the results from the operands, both in `frame`. Emits a diagnostic when it fails.",
                    "::llvm::LogicalResult", "evaluate", (ins "::mlir::moec::moe::ReferenceFrame &":$frame), "",
                    "return ::mlir::moec::moe::evaluateElementwise($_op, frame);">,
    InterfaceMethod<"What an elementwise op does with one element of each operand; empty for other ops.",
                    "::mlir::moec::moe::ScalarFunction", "getScalarFunction", (ins), "", "return {};">,
  ];
}

#endif
