//===- MixResiduals.cpp - attention residuals as linalg ---------------------------------------===//

#include "LinalgCode.h"
#include "Patterns.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Over tokens and columns: candidates are read three times, twice for their scores.
class Mix {
public:
  Mix(moe::MixResidualsOp op, PatternRewriter &rewriter)
      : op(op), b(rewriter), loc(op.getLoc()), code(rewriter, loc),
        full(code.sizesOf(op.getCandidates().front())), rows({full.front()}) {}

  Value build() {
    SmallVector<Value> scores, exponentials;
    for (Value candidate : op.getCandidates())
      scores.push_back(score(candidate));
    Value largest = perRow(
        scores, [&](Value x, Value y) -> Value { return arith::MaximumFOp::create(b, loc, x, y); });
    for (Value score : scores)
      exponentials.push_back(
          code.map(rows, code.f32(), {score, largest}, {code.identity(1), code.identity(1)},
                   [&](ArrayRef<Value> elements, Value) -> Value {
                     return math::ExpOp::create(
                         b, loc, arith::SubFOp::create(b, loc, elements[0], elements[1]));
                   }));
    Value total = perRow(exponentials, [&](Value x, Value y) { return add(x, y); });
    return weightedSum(exponentials, total);
  }

private:
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }

  /// The sum over a row's columns of what `term` makes of an element and the column's weight.
  Value sumOfRow(Value candidate, function_ref<Value(Value, Value)> term) {
    return code.generic(2, 1, {candidate, op.getWeight()}, {code.identity(2), code.project(2, 1u)},
                        code.filled(rows, 0.0), code.project(2, 0u),
                        [&](ArrayRef<Value> elements, Value sum) {
                          return add(sum, term(code.widen(elements[0]), code.widen(elements[1])));
                        });
  }

  Value score(Value candidate) {
    double width = op.getWeight().getType().getDimSize(0);
    Value squares = sumOfRow(candidate, [&](Value x, Value) { return mul(x, x); });
    Value product = sumOfRow(candidate, [&](Value x, Value weight) { return mul(x, weight); });
    return code.map(rows, code.f32(), {squares, product}, {code.identity(1), code.identity(1)},
                    [&](ArrayRef<Value> elements, Value) -> Value {
                      Value mean = arith::DivFOp::create(b, loc, elements[0], code.real(width));
                      Value shifted = add(mean, code.real(op.getEpsilon().convertToDouble()));
                      return mul(elements[1], math::RsqrtOp::create(b, loc, shifted));
                    });
  }

  /// One number a row from several.
  Value perRow(ArrayRef<Value> values, function_ref<Value(Value, Value)> combine) {
    SmallVector<AffineMap> maps(values.size(), code.identity(1));
    return code.map(rows, code.f32(), values, maps, [&](ArrayRef<Value> elements, Value) {
      Value result = elements.front();
      for (Value element : elements.drop_front())
        result = combine(result, element);
      return result;
    });
  }

  Value weightedSum(ArrayRef<Value> exponentials, Value total) {
    SmallVector<Value> inputs(op.getCandidates());
    SmallVector<AffineMap> maps(inputs.size(), code.identity(2));
    llvm::append_range(inputs, exponentials);
    inputs.push_back(total);
    maps.append(exponentials.size() + 1, code.project(2, 0u));
    Type element = op.getResult().getType().getElementType();
    return code.map(full, element, inputs, maps, [&](ArrayRef<Value> elements, Value) {
      size_t count = exponentials.size();
      Value sum;
      for (size_t i = 0; i < count; ++i) {
        Value term = mul(code.widen(elements[i]), elements[count + i]);
        sum = sum ? add(sum, term) : term;
      }
      return code.narrow(arith::DivFOp::create(b, loc, sum, elements.back()), element);
    });
  }

  moe::MixResidualsOp op;
  OpBuilder &b;
  Location loc;
  LinalgCode code;
  SmallVector<OpFoldResult> full, rows;
};

struct ConvertMixResiduals : OpRewritePattern<moe::MixResidualsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::MixResidualsOp op, PatternRewriter &rewriter) const override {
    if (op.getWeight().getType().isDynamicDim(0))
      return rewriter.notifyMatchFailure(op, "the normalised dimension must be static");
    rewriter.replaceOp(op, Mix(op, rewriter).build());
    return success();
  }
};

} // namespace

void mlir::moec::populateMixResidualsToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertMixResiduals>(patterns.getContext());
}
