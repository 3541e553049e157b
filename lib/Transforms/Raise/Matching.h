//===- Matching.h - recognising formulas
//------------------------------------------------------------===//

#ifndef MOEC_TRANSFORMS_RAISE_MATCHING_H
#define MOEC_TRANSFORMS_RAISE_MATCHING_H

#include "ElementExpression.h"

#include "mlir/IR/Builders.h"

namespace mlir::moec {

/// A term of a sum.
struct SignedTerm {
  const Expression *term;
  bool negative;
};
/// Cuts nested additions, subtractions and negations into terms.
SmallVector<SignedTerm> flattenSum(const Expression *expression);

/// A product as a number times factors. Signs are in the number.
struct Product {
  double number = 1;
  SmallVector<const Expression *> factors;
};
Product flattenProduct(const Expression *expression);

/// The argument x of 1 / (1 + exp(-x)); null for anything else.
const Expression *matchSigmoid(const Expression *expression);

/// An integer without the guards around indices from data: the wrapping of negative ones and the
/// clamping into the range.
const Expression *stripIndexGuards(ElementEvaluator &evaluator, const Expression *expression);
/// The same for a position: if it is a symbol for guarded data, the bare data. Null when it comes
/// from no data.
const Expression *indexData(ElementEvaluator &evaluator, AffineExpr position);

/// softmax(scores) along `variable`: exp(score - m) / sum exp(score - m), where m does not depend
/// on the variable. `columns` are positions of further summands behind those of the variable's
/// range (sinks).
struct SoftmaxMatch {
  const Expression *score = nullptr;       // without what does not depend on the variable
  SmallVector<const Expression *> columns; // scores of the further columns
};
std::optional<SoftmaxMatch> matchSoftmax(ElementEvaluator &evaluator, const Expression *probability,
                                         AffineExpr variable, AffineExpr extent);

/// Builds a tensor with dimensions `variables` whose elements are `expression`, which must be an
/// Element or a Reduction that reads its tensor in another order of dimensions, with dimensions of
/// size 1 left out or with a dimension split. Null when it is anything else.
Value materialize(ElementEvaluator &evaluator, OpBuilder &builder, Location location,
                  const Expression *expression, ArrayRef<AffineExpr> variables);

/// A tensor of floats with another element type.
Value convertFloats(OpBuilder &builder, Location location, Value tensor, Type element);

/// A number of f32 precision as what whoever wrote it meant: the shortest decimal that rounds to
/// it.
double intendedNumber(double value);

/// A tensor of integers as i32.
Value toI32(OpBuilder &builder, Location location, Value tensor);

} // namespace mlir::moec

#endif
