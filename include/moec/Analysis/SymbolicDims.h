//===- SymbolicDims.h - dynamic sizes as expressions of an entry's symbols --------------------===//
//
// An entry function names the dynamic dimensions of its arguments (`moe.dims = ["tokens", "sequences + 1"]`, one text for each
// dynamic dimension). This analysis expresses the dimensions of every other tensor, and index arithmetic, in those symbols.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_ANALYSIS_SYMBOLICDIMS_H
#define MOEC_ANALYSIS_SYMBOLICDIMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineExpr.h"

namespace mlir::moec {

class SymbolicDims {
public:
  /// Reads the arguments' attributes. A dynamic dimension without a text gets a symbol of its own, "<argument>.<dimension>".
  /// Every cache argument shares the symbol "cache_blocks", every state "state_slots_total". Reports malformed texts.
  static FailureOr<SymbolicDims> create(func::FuncOp entry);

  ArrayRef<std::string> getSymbols() const { return symbols; }

  /// Dimension `dim` of a tensor value; null when it is not an expression of the symbols.
  AffineExpr getDim(Value tensor, int64_t dim);

  /// All dimensions; reports the value's op when one cannot be expressed.
  FailureOr<SmallVector<AffineExpr>> getShape(Value tensor);

  /// An index or integer value, or an attribute; null when it is not an expression of the symbols.
  AffineExpr getIndex(OpFoldResult value);

  /// An index whose value is the least of several expressions: arith.minsi and minui, also multiplied by a constant. Empty when
  /// it is not.
  SmallVector<AffineExpr> getMinimum(OpFoldResult value);

  /// Forgets the results of an op that is about to be erased.
  void forget(Operation *op);

  /// The symbol that counts the blocks of caches, or slots of states.
  AffineExpr getPoolSymbol(Type stateType);

  /// A map of no dimensions and all symbols to `results`.
  AffineMap getMap(ArrayRef<AffineExpr> results) const;

private:
  explicit SymbolicDims(MLIRContext *context) : context(context) {}
  AffineExpr getSymbol(StringRef name);
  AffineExpr parse(StringRef text);
  AffineExpr computeDim(Value tensor, int64_t dim);
  AffineExpr computeIndex(Value value);

  MLIRContext *context;
  SmallVector<std::string> symbols;
  DenseMap<std::pair<Value, int64_t>, AffineExpr> dims;
  DenseMap<Value, AffineExpr> indices;
};

} // namespace mlir::moec

#endif // MOEC_ANALYSIS_SYMBOLICDIMS_H
