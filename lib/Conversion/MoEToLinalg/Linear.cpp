//===- Linear.cpp - products, rows of tables, combination of experts --------------------------===//

#include "LinalgCode.h"
#include "Patterns.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Row `rows[r]`, clamped to what `table` has, of `table` in the element type of `resultType`.
Value buildRows(LinalgCode &code, Value table, Value rows, RankedTensorType resultType) {
  PatternRewriter &rewriter = code.rewriter;
  SmallVector<OpFoldResult> sizes = {code.sizesOf(rows)[0], code.sizesOf(table)[1]};
  Value count = tensor::DimOp::create(rewriter, code.loc, table, 0);
  Value last = arith::SubIOp::create(rewriter, code.loc, count, code.index(1));
  Type from = cast<RankedTensorType>(table.getType()).getElementType(),
       to = resultType.getElementType();
  Value result =
      code.map(sizes, to, rows, code.project(2, 0), [&](ArrayRef<Value> elements, Value) -> Value {
        Value row =
            arith::IndexCastOp::create(rewriter, code.loc, rewriter.getIndexType(), elements[0]);
        row = arith::MaxSIOp::create(rewriter, code.loc, row, code.index(0));
        row = arith::MinSIOp::create(rewriter, code.loc, row, last);
        Value column = linalg::IndexOp::create(rewriter, code.loc, 1);
        Value element =
            tensor::ExtractOp::create(rewriter, code.loc, table, ValueRange{row, column});
        return from == to ? element : code.narrow(code.widen(element), to);
      });
  if (result.getType() != resultType)
    result = tensor::CastOp::create(rewriter, code.loc, resultType, result);
  return result;
}

struct ConvertEmbedding : OpRewritePattern<moe::EmbeddingOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(moe::EmbeddingOp op, PatternRewriter &rewriter) const override {
    LinalgCode code(rewriter, op.getLoc());
    rewriter.replaceOp(op, buildRows(code, op.getTable(), op.getIds(), op.getResult().getType()));
    return success();
  }
};

struct ConvertGatherRows : OpRewritePattern<moe::GatherRowsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(moe::GatherRowsOp op, PatternRewriter &rewriter) const override {
    LinalgCode code(rewriter, op.getLoc());
    rewriter.replaceOp(op, buildRows(code, op.getInput(), op.getRows(), op.getResult().getType()));
    return success();
  }
};

/// A product with a weight that lies as the checkpoint has it; the norm becomes an op of its own.
struct ConvertLinear : OpRewritePattern<moe::LinearOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::LinearOp op, PatternRewriter &rewriter) const override {
    auto weightType = dyn_cast<RankedTensorType>(op.getWeight().getType());
    if (!weightType || weightType.getEncoding())
      return rewriter.notifyMatchFailure(op, "the weight must be a plain tensor");
    Location loc = op.getLoc();
    LinalgCode code(rewriter, loc);
    Value input = op.getInput();
    if (op.getNormWeight())
      input = moe::RMSNormOp::create(rewriter, loc, input.getType(), input, op.getNormWeight(),
                                     op.getEpsilonAttr(), UnitAttr());
    SmallVector<OpFoldResult> sizes = {code.sizesOf(input)[0],
                                       rewriter.getIndexAttr(weightType.getDimSize(0))};
    Value sum = code.generic(3, 2, {input, op.getWeight()},
                             {code.project(3, {0, 2}), code.project(3, {1, 2})},
                             code.filled(sizes, 0.0), code.project(3, {0, 1}),
                             [&](ArrayRef<Value> elements, Value accumulator) -> Value {
                               Value product = arith::MulFOp::create(
                                   rewriter, loc, code.widen(elements[0]), code.widen(elements[1]));
                               return arith::AddFOp::create(rewriter, loc, accumulator, product);
                             });
    Type element = op.getResult().getType().getElementType();
    SmallVector<Value> inputs = {sum};
    SmallVector<AffineMap> maps = {code.identity(2)};
    if (op.getBias()) {
      inputs.push_back(op.getBias());
      maps.push_back(code.project(2, 1));
    }
    if (op.getResidual()) {
      inputs.push_back(op.getResidual());
      maps.push_back(code.identity(2));
    }
    rewriter.replaceOp(op,
                       code.map(sizes, element, inputs, maps, [&](ArrayRef<Value> elements, Value) {
                         Value y = elements[0];
                         for (Value other : elements.drop_front())
                           y = arith::AddFOp::create(rewriter, loc, y, code.widen(other));
                         return code.narrow(y, element);
                       }));
    return success();
  }
};

struct ConvertCombine : OpRewritePattern<moe::CombineOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::CombineOp op, PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LinalgCode code(rewriter, loc);
    int64_t choices = cast<RankedTensorType>(op.getWeights().getType()).getDimSize(1);
    auto inputType = cast<RankedTensorType>(op.getInput().getType());
    if (ShapedType::isDynamic(choices) || inputType.isDynamicDim(1))
      return rewriter.notifyMatchFailure(op, "the number of choices and the width must be static");
    OpFoldResult tokens = code.sizesOf(op.getWeights())[0];
    int64_t width = inputType.getDimSize(1);
    auto expandedType = RankedTensorType::get(
        {cast<RankedTensorType>(op.getWeights().getType()).getDimSize(0), choices, width},
        inputType.getElementType());
    SmallVector<ReassociationIndices> groups = {{0, 1}, {2}};
    SmallVector<OpFoldResult> expandedSizes = {tokens, rewriter.getIndexAttr(choices),
                                               rewriter.getIndexAttr(width)};
    Value expanded = tensor::ExpandShapeOp::create(rewriter, loc, expandedType, op.getInput(),
                                                   groups, expandedSizes);

    // Over (token, column, choice): choices are summed in order, in registers.
    SmallVector<OpFoldResult> sizes = {tokens, rewriter.getIndexAttr(width)};
    AffineMap perChoice = code.project(3, {0, 2});
    Value start;
    if (op.getResidual())
      start = code.map(sizes, code.f32(), op.getResidual(), code.identity(2),
                       [&](ArrayRef<Value> elements, Value) { return code.widen(elements[0]); });
    else
      start = code.filled(sizes, 0.0);
    Value sum = code.generic(
        3, 2, {expanded, op.getWeights(), op.getIndices()},
        {code.project(3, {0, 2, 1}), perChoice, perChoice}, start, code.project(3, {0, 1}),
        [&](ArrayRef<Value> elements, Value accumulator) -> Value {
          Value product =
              arith::MulFOp::create(rewriter, loc, elements[1], code.widen(elements[0]));
          Value next = arith::AddFOp::create(rewriter, loc, accumulator, product);
          Value zero =
              arith::ConstantOp::create(rewriter, loc, rewriter.getZeroAttr(elements[2].getType()));
          Value isThere =
              arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::sge, elements[2], zero);
          // Rows without an expert are undefined: they must not reach the sum, even as NaN.
          return arith::SelectOp::create(rewriter, loc, isThere, next, accumulator);
        });
    Type element = op.getResult().getType().getElementType();
    if (!element.isF32())
      sum = code.map(sizes, element, sum, code.identity(2), [&](ArrayRef<Value> elements, Value) {
        return code.narrow(elements[0], element);
      });
    rewriter.replaceOp(op, sum);
    return success();
  }
};

} // namespace

void mlir::moec::populateLinearToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertEmbedding, ConvertGatherRows, ConvertLinear, ConvertCombine>(
      patterns.getContext());
}
