//===- Cost.h - how much an op computes and moves -----------------------------------*- C++ -*-===//
//
// For reports such as `moec bench`, which set the time of a launch beside its work. No decision of
// the compiler depends on it.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_ANALYSIS_COST_H
#define MOEC_ANALYSIS_COST_H

#include "moec/Analysis/SymbolicDims.h"

namespace mlir::moec {

/// Expressions of the entry's symbols.
struct Cost {
  /// Floating point operations, a multiplication and an addition counting as two; null for ops that
  /// are not products.
  AffineExpr flops;
  /// Bytes read and written when each is touched once: the least of these; empty: unknown.
  SmallVector<AffineExpr> bytesMoved;
};

/// The cost of `op`, whose inputs and outputs (`bindings`) have `bytes` each. Of experts' weights
/// only as many experts count as tokens can choose, of a state the slots of the step's sequences;
/// attention is unknown, because it depends on the lengths of the sequences.
Cost estimateCost(Operation *op, SymbolicDims &dims, ArrayRef<Value> bindings,
                  ArrayRef<AffineExpr> bytes);

} // namespace mlir::moec

#endif // MOEC_ANALYSIS_COST_H
