//===- Norms.cpp - rms_norm, layer_norm and gated_rms_norm as linalg --------------------------===//

#include "LinalgCode.h"
#include "Patterns.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// A norm over the last dimension: maps and sizes that all of them need.
struct NormSpace {
  NormSpace(LinalgCode &code, Value input)
      : input(input), rank(cast<RankedTensorType>(input.getType()).getRank()),
        full(code.sizesOf(input)), rows(ArrayRef(full).drop_back()), identity(code.identity(rank)) {
    SmallVector<unsigned> leading = llvm::to_vector(llvm::seq<unsigned>(0, rank - 1));
    row = code.project(rank, leading);
    column = code.project(rank, rank - 1);
  }

  /// The mean over the last dimension of what `term` makes of an element (and of a value for each
  /// row).
  Value mean(LinalgCode &code, int64_t size, ValueRange perRow,
             function_ref<Value(ArrayRef<Value>)> term) {
    SmallVector<Value> inputs = {input};
    SmallVector<AffineMap> maps = {identity};
    for (Value value : perRow) {
      inputs.push_back(value);
      maps.push_back(row);
    }
    Value sum = code.generic(rank, rank - 1, inputs, maps, code.filled(rows, 0.0), row,
                             [&](ArrayRef<Value> elements, Value accumulator) -> Value {
                               return arith::AddFOp::create(code.rewriter, code.loc, accumulator,
                                                            term(elements));
                             });
    return code.map(rows, code.f32(), sum, code.identity(rank - 1),
                    [&](ArrayRef<Value> elements, Value) -> Value {
                      return arith::DivFOp::create(code.rewriter, code.loc, elements[0],
                                                   code.real(size));
                    });
  }

  Value input;
  unsigned rank;
  SmallVector<OpFoldResult> full, rows;
  AffineMap identity, row, column;
};

/// 1 / sqrt(variance + epsilon), for each row.
Value buildReciprocalDeviation(LinalgCode &code, NormSpace &space, Value variance, double epsilon) {
  return code.map(space.rows, code.f32(), variance, code.identity(space.rank - 1),
                  [&](ArrayRef<Value> elements, Value) -> Value {
                    Value shifted = arith::AddFOp::create(code.rewriter, code.loc, elements[0],
                                                          code.real(epsilon));
                    return math::RsqrtOp::create(code.rewriter, code.loc, shifted);
                  });
}

/// 1 / sqrt(mean of squares + epsilon), for each row.
Value buildReciprocalRootMeanSquare(LinalgCode &code, NormSpace &space, int64_t size,
                                    double epsilon) {
  Value meanSquare = space.mean(code, size, {}, [&](ArrayRef<Value> elements) -> Value {
    Value x = code.widen(elements[0]);
    return arith::MulFOp::create(code.rewriter, code.loc, x, x);
  });
  return buildReciprocalDeviation(code, space, meanSquare, epsilon);
}

/// The size of the last dimension, or failure when it is dynamic.
FailureOr<int64_t> getHiddenSize(Operation *op, Value input, PatternRewriter &rewriter) {
  auto type = cast<RankedTensorType>(input.getType());
  if (type.getRank() < 1 || type.isDynamicDim(type.getRank() - 1))
    return rewriter.notifyMatchFailure(op, "the normalised dimension must be static");
  return type.getShape().back();
}

struct ConvertRMSNorm : OpRewritePattern<moe::RMSNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::RMSNormOp op, PatternRewriter &rewriter) const override {
    FailureOr<int64_t> size = getHiddenSize(op, op.getInput(), rewriter);
    if (failed(size))
      return failure();
    LinalgCode code(rewriter, op.getLoc());
    NormSpace space(code, op.getInput());
    Value scale =
        buildReciprocalRootMeanSquare(code, space, *size, op.getEpsilon().convertToDouble());

    SmallVector<Value> inputs = {op.getInput(), scale};
    SmallVector<AffineMap> maps = {space.identity, space.row};
    if (op.getWeight()) {
      inputs.push_back(op.getWeight());
      maps.push_back(space.column);
    }
    Type element = op.getResult().getType().getElementType();
    rewriter.replaceOp(
        op, code.map(space.full, element, inputs, maps, [&](ArrayRef<Value> elements, Value) {
          Value y =
              arith::MulFOp::create(rewriter, op.getLoc(), code.widen(elements[0]), elements[1]);
          if (op.getWeight()) {
            Value weight = code.widen(elements[2]);
            if (op.getUnitOffset())
              weight = arith::AddFOp::create(rewriter, op.getLoc(), weight, code.real(1.0));
            y = arith::MulFOp::create(rewriter, op.getLoc(), y, weight);
          }
          return code.narrow(y, element);
        }));
    return success();
  }
};

struct ConvertLayerNorm : OpRewritePattern<moe::LayerNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::LayerNormOp op, PatternRewriter &rewriter) const override {
    FailureOr<int64_t> size = getHiddenSize(op, op.getInput(), rewriter);
    if (failed(size))
      return failure();
    LinalgCode code(rewriter, op.getLoc());
    NormSpace space(code, op.getInput());
    Value mean = space.mean(code, *size, {},
                            [&](ArrayRef<Value> elements) { return code.widen(elements[0]); });
    // In two passes: the difference of two large sums would lose the variance's bits.
    Value variance = space.mean(code, *size, mean, [&](ArrayRef<Value> elements) -> Value {
      Value centred =
          arith::SubFOp::create(rewriter, op.getLoc(), code.widen(elements[0]), elements[1]);
      return arith::MulFOp::create(rewriter, op.getLoc(), centred, centred);
    });
    Value scale =
        buildReciprocalDeviation(code, space, variance, op.getEpsilon().convertToDouble());

    SmallVector<Value> inputs = {op.getInput(), mean, scale};
    SmallVector<AffineMap> maps = {space.identity, space.row, space.row};
    for (Value parameter : {Value(op.getWeight()), Value(op.getBias())})
      if (parameter) {
        inputs.push_back(parameter);
        maps.push_back(space.column);
      }
    Type element = op.getResult().getType().getElementType();
    rewriter.replaceOp(
        op, code.map(space.full, element, inputs, maps, [&](ArrayRef<Value> elements, Value) {
          Value y =
              arith::SubFOp::create(rewriter, op.getLoc(), code.widen(elements[0]), elements[1]);
          y = arith::MulFOp::create(rewriter, op.getLoc(), y, elements[2]);
          unsigned next = 3;
          if (op.getWeight())
            y = arith::MulFOp::create(rewriter, op.getLoc(), y, code.widen(elements[next++]));
          if (op.getBias())
            y = arith::AddFOp::create(rewriter, op.getLoc(), y, code.widen(elements[next]));
          return code.narrow(y, element);
        }));
    return success();
  }
};

struct ConvertGatedRMSNorm : OpRewritePattern<moe::GatedRMSNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::GatedRMSNormOp op, PatternRewriter &rewriter) const override {
    FailureOr<int64_t> size = getHiddenSize(op, op.getInput(), rewriter);
    if (failed(size))
      return failure();
    LinalgCode code(rewriter, op.getLoc());
    NormSpace space(code, op.getInput());
    Value scale =
        buildReciprocalRootMeanSquare(code, space, *size, op.getEpsilon().convertToDouble());

    SmallVector<Value> inputs = {op.getInput(), scale, op.getGate()};
    SmallVector<AffineMap> maps = {space.identity, space.row, space.identity};
    if (op.getWeight()) {
      inputs.push_back(op.getWeight());
      maps.push_back(space.column);
    }
    bool isSilu = op.getFunction() == moe::GateFunction::silu;
    Type element = op.getResult().getType().getElementType();
    rewriter.replaceOp(
        op, code.map(space.full, element, inputs, maps, [&](ArrayRef<Value> elements, Value) {
          Value y =
              arith::MulFOp::create(rewriter, op.getLoc(), code.widen(elements[0]), elements[1]);
          if (op.getWeight())
            y = arith::MulFOp::create(rewriter, op.getLoc(), y, code.widen(elements[3]));
          Value gate = code.widen(elements[2]), factor = code.sigmoid(gate);
          if (isSilu)
            factor = arith::MulFOp::create(rewriter, op.getLoc(), gate, factor);
          y = arith::MulFOp::create(rewriter, op.getLoc(), y, factor);
          return code.narrow(y, element);
        }));
    return success();
  }
};

} // namespace

void mlir::moec::populateNormToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertRMSNorm, ConvertLayerNorm, ConvertGatedRMSNorm>(patterns.getContext());
}
