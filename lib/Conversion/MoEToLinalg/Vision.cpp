//===- Vision.cpp - interpolated positions and replaced rows as linalg ------------------------===//

#include "LinalgCode.h"
#include "Patterns.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Arithmetic on elements.
class ElementCode {
public:
  explicit ElementCode(LinalgCode &code) : code(code) {}

  Value add(Value a, Value b) { return arith::AddFOp::create(code.rewriter, code.loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(code.rewriter, code.loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(code.rewriter, code.loc, a, b); }
  Value toFloat(Value integer) {
    return arith::SIToFPOp::create(code.rewriter, code.loc, code.f32(), integer);
  }
  Value between(Value first, Value second, Value fraction) {
    return add(mul(sub(code.real(1.0), fraction), first), mul(fraction, second));
  }

  LinalgCode &code;
};

/// Between which two entries of a grid's side a place lies, and how far it is from the first one.
struct Place {
  Place(ElementCode element, Value index, Value count, int64_t entries) {
    LinalgCode &code = element.code;
    OpBuilder &b = code.rewriter;
    Location loc = code.loc;
    Value one = arith::ConstantOp::create(b, loc, b.getIntegerAttr(count.getType(), 1));
    Value size = element.toFloat(arith::MaxSIOp::create(b, loc, count, one));
    Value scale = arith::DivFOp::create(b, loc, code.real(entries), size);
    Value middle = element.add(element.toFloat(index), code.real(0.5));
    Value coordinate = element.sub(element.mul(middle, scale), code.real(0.5));
    coordinate = arith::MaximumFOp::create(b, loc, coordinate, code.real(0.0));
    coordinate = arith::MinimumFOp::create(b, loc, coordinate, code.real(entries - 1));
    // Not negative, so that rounding towards zero rounds down.
    Value whole = arith::FPToSIOp::create(b, loc, b.getI32Type(), coordinate);
    fraction = element.sub(coordinate, element.toFloat(whole));
    first = arith::IndexCastOp::create(b, loc, b.getIndexType(), whole);
    second = arith::AddIOp::create(b, loc, first, code.index(1));
    second = arith::MinSIOp::create(b, loc, second, code.index(entries - 1));
  }

  Value first, second, fraction;
};

struct ConvertInterpolatePositions : OpRewritePattern<moe::InterpolatePositionsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::InterpolatePositionsOp op,
                                PatternRewriter &rewriter) const override {
    LinalgCode code(rewriter, op.getLoc());
    ArrayRef<int64_t> grid = op.getGrid().getType().getShape();
    RankedTensorType resultType = op.getResult().getType();
    SmallVector<OpFoldResult> sizes = {code.sizesOf(op.getRows())[0],
                                       rewriter.getIndexAttr(grid[2])};
    SmallVector<AffineMap> maps(4, code.project(2, 0));
    Value result = code.map(
        sizes, resultType.getElementType(),
        {op.getRows(), op.getHeights(), op.getColumns(), op.getWidths()}, maps,
        [&](ArrayRef<Value> elements, Value) -> Value {
          ElementCode element(code);
          Place y(element, elements[0], elements[1], grid[0]);
          Place x(element, elements[2], elements[3], grid[1]);
          Value feature = linalg::IndexOp::create(rewriter, op.getLoc(), 1);
          auto entry = [&](Value row, Value column) {
            return code.widen(tensor::ExtractOp::create(rewriter, op.getLoc(), op.getGrid(),
                                                        ValueRange{row, column, feature}));
          };
          Value above =
              element.between(entry(y.first, x.first), entry(y.first, x.second), x.fraction);
          Value below =
              element.between(entry(y.second, x.first), entry(y.second, x.second), x.fraction);
          return code.narrow(element.between(above, below, y.fraction),
                             resultType.getElementType());
        });
    if (result.getType() != resultType)
      result = tensor::CastOp::create(rewriter, op.getLoc(), resultType, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct ConvertReplaceRows : OpRewritePattern<moe::ReplaceRowsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::ReplaceRowsOp op, PatternRewriter &rewriter) const override {
    LinalgCode code(rewriter, op.getLoc());
    RankedTensorType resultType = op.getResult().getType();
    Type from = op.getReplacements().getType().getElementType(), to = resultType.getElementType();
    Value count = tensor::DimOp::create(rewriter, op.getLoc(), op.getReplacements(), 0);
    Value last = arith::SubIOp::create(rewriter, op.getLoc(), count, code.index(1));
    Value result = code.map(
        code.sizesOf(op.getInput()), to, {op.getInput(), op.getRows()},
        {code.identity(2), code.project(2, 0)}, [&](ArrayRef<Value> elements, Value) -> Value {
          Value row = arith::IndexCastOp::create(rewriter, op.getLoc(), rewriter.getIndexType(),
                                                 elements[1]);
          Value isKept = arith::CmpIOp::create(rewriter, op.getLoc(), arith::CmpIPredicate::slt,
                                               row, code.index(0));
          row = arith::MaxSIOp::create(rewriter, op.getLoc(), row, code.index(0));
          row = arith::MinSIOp::create(rewriter, op.getLoc(), row, last);
          Value column = linalg::IndexOp::create(rewriter, op.getLoc(), 1);
          Value other = tensor::ExtractOp::create(rewriter, op.getLoc(), op.getReplacements(),
                                                  ValueRange{row, column});
          if (from != to)
            other = code.narrow(code.widen(other), to);
          return arith::SelectOp::create(rewriter, op.getLoc(), isKept, elements[0], other);
        });
    if (result.getType() != resultType)
      result = tensor::CastOp::create(rewriter, op.getLoc(), resultType, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void mlir::moec::populateVisionToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertInterpolatePositions, ConvertReplaceRows>(patterns.getContext());
}
