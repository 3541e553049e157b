//===- Dequantize.cpp - block tensors as plain numbers ----------------------------------------===//

#include "LinalgCode.h"
#include "Patterns.h"
#include "SmallFloats.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// `value` in the shape [rows, columns] of the same elements in the same order.
Value reshapeToMatrix(LinalgCode &code, Value value, int64_t rows, int64_t columns) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<ReassociationIndices> all(1);
  for (int64_t i = 0; i < type.getRank(); ++i)
    all[0].push_back(i);
  if (type.getRank() != 1)
    value = tensor::CollapseShapeOp::create(code.rewriter, code.loc, value, all);
  auto matrix = RankedTensorType::get({rows, columns}, type.getElementType());
  SmallVector<ReassociationIndices> split = {{0, 1}};
  return tensor::ExpandShapeOp::create(code.rewriter, code.loc, matrix, value, split);
}

struct ConvertDequantize : OpRewritePattern<moe::DequantizeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::DequantizeOp op, PatternRewriter &rewriter) const override {
    auto blocks = op.getSource().getDefiningOp<moe::AssembleBlocksOp>();
    if (!blocks)
      return rewriter.notifyMatchFailure(op, "the source must be assembled from codes and scales");
    auto type = cast<RankedTensorType>(op.getResult().getType());
    if (!type.hasStaticShape() || !cast<ShapedType>(blocks.getCodes().getType()).hasStaticShape() ||
        !cast<ShapedType>(blocks.getScales().getType()).hasStaticShape())
      return rewriter.notifyMatchFailure(op, "shapes must be static");
    Location loc = op.getLoc();
    LinalgCode code(rewriter, loc);
    constexpr int64_t blockSize = moe::BlockTensorType::mxfp4BlockSize;
    int64_t columns = type.getShape().back(), rows = type.getNumElements() / columns;
    Value codes =
        reshapeToMatrix(code, blocks.getCodes(), rows * columns / blockSize, blockSize / 2);
    Value scales = reshapeToMatrix(code, blocks.getScales(), rows * columns / blockSize, 1);
    SmallVector<ReassociationIndices> flat = {{0, 1}};
    scales = tensor::CollapseShapeOp::create(rewriter, loc, scales, flat);

    // Over (block, byte, nibble): the even element lies in the low nibble.
    SmallVector<OpFoldResult> sizes = {rewriter.getIndexAttr(rows * columns / blockSize),
                                       rewriter.getIndexAttr(blockSize / 2),
                                       rewriter.getIndexAttr(2)};
    Type element = type.getElementType();
    Value numbers = code.map(
        sizes, element, {codes, scales}, {code.project(3, {0, 1}), code.project(3, 0)},
        [&](ArrayRef<Value> elements, Value) {
          Value nibble = linalg::IndexOp::create(rewriter, loc, 2);
          nibble = arith::IndexCastOp::create(rewriter, loc, rewriter.getI32Type(), nibble);
          Value four = arith::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(4));
          Value shift = arith::MulIOp::create(rewriter, loc, nibble, four);
          Value byte = arith::ExtUIOp::create(rewriter, loc, rewriter.getI32Type(), elements[0]);
          Value bits = arith::ShRUIOp::create(rewriter, loc, byte, shift);
          Value number = arith::MulFOp::create(rewriter, loc, decodeE2M1(code, bits),
                                               decodeE8M0(code, elements[1]));
          return code.narrow(number, element);
        });
    SmallVector<ReassociationIndices> all = {{0, 1, 2}};
    numbers = tensor::CollapseShapeOp::create(rewriter, loc, numbers, all);
    if (type.getRank() != 1) {
      SmallVector<ReassociationIndices> split(1);
      for (int64_t i = 0; i < type.getRank(); ++i)
        split[0].push_back(i);
      numbers = tensor::ExpandShapeOp::create(rewriter, loc, type, numbers, split);
    }
    rewriter.replaceOp(op, numbers);
    return success();
  }
};

} // namespace

void mlir::moec::populateDequantizeToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertDequantize>(patterns.getContext());
}
