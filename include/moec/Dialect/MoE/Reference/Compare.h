//===- Compare.h - compiled results against the interpreter's ---------------------------------===//

#ifndef MOEC_DIALECT_MOE_REFERENCE_COMPARE_H
#define MOEC_DIALECT_MOE_REFERENCE_COMPARE_H

#include "moec/Dialect/MoE/Reference/Interpreter.h"

namespace mlir::moec::moe {

/// A number agrees when |actual - expected| <= absolute + relative * |expected|. Integers and
/// infinities must be equal, a NaN must be one.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
  /// A NaN that is expected matches everything: the interpreter leaves undefined elements as NaN.
  bool isUndefinedNaN = false;
};

/// How far two tensors are apart, over the finite numbers.
struct Distance {
  double largestAbsolute = 0;
  /// sqrt(sum (actual - expected)^2 / sum expected^2).
  double relativeRMS = 0;
};

Distance measureDistance(const ReferenceTensor &actual, const ReferenceTensor &expected);

/// Succeeds when the tensors agree. `report` says what the distance is and, on failure, names the
/// first elements that differ.
LogicalResult compareTensors(const ReferenceTensor &actual, const ReferenceTensor &expected,
                             const Tolerance &tolerance, std::string &report);

/// Interprets `entry` of a module of phase `moe` on `inputs` and compares its results with
/// `outputs`, which compiled code computed from the same inputs. Caches among the inputs are
/// changed as the program does. Emits a diagnostic when the interpreter fails; otherwise all is in
/// `report`.
LogicalResult compareWithReference(ModuleOp module, WeightSource *weights, StringRef entry,
                                   ArrayRef<ReferenceValue> inputs,
                                   ArrayRef<ReferenceTensor> outputs, const Tolerance &tolerance,
                                   std::string &report);

} // namespace mlir::moec::moe

#endif // MOEC_DIALECT_MOE_REFERENCE_COMPARE_H
