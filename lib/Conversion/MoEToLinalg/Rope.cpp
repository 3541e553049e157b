//===- Rope.cpp - rotary embeddings as linalg -------------------------------------------------===//

#include "LinalgCode.h"
#include "Patterns.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// cos and sin, times the magnitude, of every token's angles: [tokens, frequencies].
Value buildAngles(LinalgCode &code, Value positions, moe::RotaryAttr rotary, bool cosine) {
  ArrayRef<float> frequencies = rotary.getFrequencies().asArrayRef();
  auto type = RankedTensorType::get({int64_t(frequencies.size())}, code.f32());
  Value table =
      arith::ConstantOp::create(code.rewriter, code.loc, DenseElementsAttr::get(type, frequencies));
  SmallVector<OpFoldResult> sizes = code.sizesOf(positions);
  sizes.push_back(code.rewriter.getIndexAttr(frequencies.size()));
  return code.map(
      sizes, code.f32(), {positions, table}, {code.project(2, 0), code.project(2, 1)},
      [&](ArrayRef<Value> elements, Value) -> Value {
        Value position = arith::SIToFPOp::create(code.rewriter, code.loc, code.f32(), elements[0]);
        Value angle = arith::MulFOp::create(code.rewriter, code.loc, position, elements[1]);
        Value value = cosine ? Value(math::CosOp::create(code.rewriter, code.loc, angle))
                             : Value(math::SinOp::create(code.rewriter, code.loc, angle));
        return arith::MulFOp::create(code.rewriter, code.loc, value,
                                     code.real(rotary.getMagnitude()));
      });
}

struct ConvertRope : OpRewritePattern<moe::RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::RopeOp op, PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    if (type.isDynamicDim(1) || type.isDynamicDim(2))
      return rewriter.notifyMatchFailure(op, "heads and their dimension must be static");
    LinalgCode code(rewriter, op.getLoc());
    moe::RotaryAttr rotary = op.getRotary();
    int64_t pairs = rotary.getFrequencies().size(), offset = rotary.getOffset(),
            dim = type.getDimSize(2);
    int64_t stride = rotary.getInterleaved() ? 2 : 1;
    Value cosine = buildAngles(code, op.getPositions(), rotary, true);
    Value sine = buildAngles(code, op.getPositions(), rotary, false);

    SmallVector<OpFoldResult> full = code.sizesOf(op.getInput());
    auto slice = [&](int64_t first, int64_t count, int64_t step, Value source) -> Value {
      SmallVector<OpFoldResult> offsets = {rewriter.getIndexAttr(0), rewriter.getIndexAttr(0),
                                           rewriter.getIndexAttr(first)};
      SmallVector<OpFoldResult> sizes = {full[0], full[1], rewriter.getIndexAttr(count)};
      SmallVector<OpFoldResult> strides = {rewriter.getIndexAttr(1), rewriter.getIndexAttr(1),
                                           rewriter.getIndexAttr(step)};
      return tensor::ExtractSliceOp::create(rewriter, op.getLoc(), source, offsets, sizes, strides);
    };
    Value a = slice(offset, pairs, stride, op.getInput());
    Value b = slice(offset + (rotary.getInterleaved() ? 1 : pairs), pairs, stride, op.getInput());

    // Both halves of the rotated part as one op over [tokens, heads, half, pair] or, interleaved,
    // [.., pair, half].
    bool interleaved = rotary.getInterleaved();
    unsigned pairDim = interleaved ? 2 : 3, halfDim = interleaved ? 3 : 2;
    SmallVector<OpFoldResult> sizes = {full[0], full[1], rewriter.getIndexAttr(2),
                                       rewriter.getIndexAttr(2)};
    sizes[pairDim] = rewriter.getIndexAttr(pairs);
    AffineMap element = code.project(4, {0, 1, pairDim}), angle = code.project(4, {0, pairDim});
    Value rotated = code.map(
        sizes, type.getElementType(), {a, b, cosine, sine}, {element, element, angle, angle},
        [&](ArrayRef<Value> elements, Value) {
          Value half = linalg::IndexOp::create(rewriter, op.getLoc(), halfDim);
          Value isFirst = arith::CmpIOp::create(rewriter, op.getLoc(), arith::CmpIPredicate::eq,
                                                half, code.index(0));
          Value first = code.widen(elements[0]), second = code.widen(elements[1]);
          Value straight = arith::SelectOp::create(rewriter, op.getLoc(), isFirst, first, second);
          Value crossed = arith::SelectOp::create(
              rewriter, op.getLoc(), isFirst,
              Value(arith::NegFOp::create(rewriter, op.getLoc(), second)), first);
          Value x = arith::MulFOp::create(rewriter, op.getLoc(), straight, elements[2]);
          Value y = arith::MulFOp::create(rewriter, op.getLoc(), crossed, elements[3]);
          return code.narrow(arith::AddFOp::create(rewriter, op.getLoc(), x, y),
                             type.getElementType());
        });
    SmallVector<ReassociationIndices> groups = {{0}, {1}, {2, 3}};
    rotated = tensor::CollapseShapeOp::create(rewriter, op.getLoc(), rotated, groups);
    if (2 * pairs == dim) {
      if (rotated.getType() != type)
        rotated = tensor::CastOp::create(rewriter, op.getLoc(), type, rotated);
      rewriter.replaceOp(op, rotated);
      return success();
    }

    SmallVector<Value> parts;
    if (offset > 0)
      parts.push_back(slice(0, offset, 1, op.getInput()));
    parts.push_back(rotated);
    if (offset + 2 * pairs < dim)
      parts.push_back(slice(offset + 2 * pairs, dim - offset - 2 * pairs, 1, op.getInput()));
    rewriter.replaceOpWithNewOp<tensor::ConcatOp>(op, type, /*dim=*/2, parts);
    return success();
  }
};

} // namespace

void mlir::moec::populateRopeToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertRope>(patterns.getContext());
}
