//===- ElementExpression.h - one element of a tensor as a formula
//--------------------------------===//
//
// What an exporter writes for rotary embeddings, masks or experts differs from version to version,
// but the value of one element, as a formula of elements of other tensors, does not.
// ElementEvaluator computes that formula: it looks through reshapes, transposes, broadcasts,
// slices, concatenations, gathers and elementwise ops, and the raising passes match the formula
// instead of chains of ops.
//
// Positions are affine expressions. Dimensions of such an expression are variables, each with a
// range [0, extent); symbols are sizes of tensors and integers that come from data.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_TRANSFORMS_RAISE_ELEMENTEXPRESSION_H
#define MOEC_TRANSFORMS_RAISE_ELEMENTEXPRESSION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/FoldingSet.h"

#include <memory>
#include <optional>
#include <vector>

namespace mlir::moec {

class ElementEvaluator;

/// A node of a formula. Equal formulas of one evaluator are the same object.
struct Expression : llvm::FoldingSetNode {
  enum class Kind {
    Constant,  // a floating-point number
    Index,     // an integer, as an affine expression
    Element,   // element `indices` of `value`, into which the evaluator does not look
    Reduction, // element `indices` of the result of a linalg op that sums or takes extremes
    Operation, // `name` applied to `operands`
  };
  Kind kind;
  double number = 0;
  AffineExpr index;
  Value value;
  SmallVector<AffineExpr> indices;
  StringRef name; // of an MLIR operation; "arith.cmpi" and "arith.cmpf" have a predicate
  int64_t predicate = 0;
  SmallVector<const Expression *> operands;

  bool isConstant(double wanted) const { return kind == Kind::Constant && number == wanted; }
  bool isOperation(StringRef wanted) const { return kind == Kind::Operation && name == wanted; }
  void Profile(llvm::FoldingSetNodeID &id) const;
};

/// The body of a reduction, over fresh variables.
struct ReductionBody {
  StringRef combiner; // "arith.addf", "arith.maximumf", ...
  SmallVector<unsigned> variables;
  const Expression *body = nullptr;
};

class ElementEvaluator {
public:
  explicit ElementEvaluator(MLIRContext *context) : context(context) {}

  /// A new variable with range [0, extent). A null extent: unknown.
  AffineExpr variable(AffineExpr extent);
  /// New variables for all dimensions of a tensor; those of size 1 are the constant 0.
  SmallVector<AffineExpr> variablesFor(Value tensor);
  AffineExpr constant(int64_t value) { return getAffineConstantExpr(value, context); }
  /// The extent of a variable, by position; null when unknown.
  AffineExpr extentOf(unsigned variable) const { return variables[variable].extent; }
  /// The size of a dimension.
  AffineExpr size(Value tensor, int64_t dimension);

  const Expression *evaluate(Value tensor, ArrayRef<AffineExpr> indices);
  /// The element itself, without looking into the tensor.
  const Expression *makeElement(Value value, ArrayRef<AffineExpr> indices);
  /// The value of a scalar.
  const Expression *evaluateScalar(Value scalar);

  /// The formula that a reduction sums. With `at`, its single variable is replaced by that
  /// position.
  std::optional<ReductionBody> reductionBody(const Expression *reduction,
                                             AffineExpr at = AffineExpr());

  /// An integer as an affine expression: itself, or a symbol for it.
  AffineExpr toIndex(const Expression *expression);

  /// The formula behind a symbol that stands for an integer from data; null for sizes.
  const Expression *dataOf(AffineExpr symbol) const;

  /// Whether the formula depends on a variable.
  bool dependsOn(const Expression *expression, AffineExpr variable);
  bool dependsOn(AffineExpr index, AffineExpr variable);

  /// Whether an integer is at least 0, for all values of the variables and non-negative symbols.
  bool isNonNegative(AffineExpr expression);
  /// Simplifies divisions and remainders by the ranges of the variables.
  AffineExpr simplify(AffineExpr expression);

private:
  struct Variable {
    AffineExpr extent;
  };
  struct Symbol {
    Value tensor; // with `dimension`: a size
    int64_t dimension = 0;
    const Expression *data = nullptr; // an integer from data
  };
  using Scope = DenseMap<Value, const Expression *>;

  const Expression *computeElement(Value tensor, ArrayRef<AffineExpr> indices);
  const Expression *computeScalar(Value scalar);
  const Expression *unique(Expression &&expression);
  const Expression *makeConstant(double number);
  const Expression *makeIndex(AffineExpr index);
  const Expression *makeOperation(StringRef name, ArrayRef<const Expression *> operands,
                                  int64_t predicate = 0);
  AffineExpr sizeSymbol(Value tensor, int64_t dimension);

  const Expression *evaluateOperation(Operation *op, ArrayRef<const Expression *> operands);
  const Expression *evaluateLinalg(linalg::LinalgOp op, Value result, ArrayRef<AffineExpr> indices);
  const Expression *evaluateInBody(linalg::LinalgOp op, ArrayRef<AffineExpr> loops, Value value,
                                   Scope &scope);
  std::optional<SmallVector<AffineExpr>> throughExpand(tensor::ExpandShapeOp op,
                                                       ArrayRef<AffineExpr> indices);
  std::optional<SmallVector<AffineExpr>> throughCollapse(tensor::CollapseShapeOp op,
                                                         ArrayRef<AffineExpr> indices);
  std::optional<SmallVector<AffineExpr>> throughSlice(tensor::ExtractSliceOp op,
                                                      ArrayRef<AffineExpr> indices);
  AffineExpr foldToExpr(OpFoldResult fold);

  MLIRContext *context;
  llvm::FoldingSet<Expression> expressions;
  std::vector<std::unique_ptr<Expression>> storage;
  std::vector<Variable> variables;
  std::vector<Symbol> symbols;
  DenseMap<std::pair<Value, int64_t>, AffineExpr> sizeSymbols;
  DenseMap<const Expression *, AffineExpr> dataSymbols;
  DenseMap<std::pair<const Expression *, unsigned>, bool> dependence;
  DenseMap<const Expression *, const Expression *> evaluated; // by the Element that was asked for
  unsigned depth = 0;
};

} // namespace mlir::moec

#endif
