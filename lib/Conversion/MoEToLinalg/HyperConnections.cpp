//===- HyperConnections.cpp - hyper_collapse and hyper_expand as linalg -----------------------===//

#include "LinalgCode.h"
#include "Patterns.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// Elements [first, first + count) of the second dimension; that dimension is dropped when it is
/// one of a single element.
Value take(LinalgCode &code, Value tensor, int64_t first, int64_t count) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  if (count == 1)
    shape.erase(shape.begin() + 1);
  else
    shape[1] = count;
  SmallVector<OpFoldResult> sizes = code.sizesOf(tensor);
  SmallVector<OpFoldResult> offsets(sizes.size(), code.rewriter.getIndexAttr(0)),
      strides(sizes.size(), code.rewriter.getIndexAttr(1));
  offsets[1] = code.rewriter.getIndexAttr(first);
  sizes[1] = code.rewriter.getIndexAttr(count);
  return tensor::ExtractSliceOp::create(code.rewriter, code.loc,
                                        RankedTensorType::get(shape, type.getElementType()), tensor,
                                        offsets, sizes, strides);
}

/// The sum of products of neighbours: weights, f32, and elements of any type. All streams in one
/// elementwise op, so that sums are in registers and not in memory.
Value buildSum(LinalgCode &code, ArrayRef<Value> elements, Type type) {
  Value sum;
  for (size_t i = 0; i < elements.size(); i += 2) {
    Value product =
        arith::MulFOp::create(code.rewriter, code.loc, elements[i], code.widen(elements[i + 1]));
    sum = sum ? Value(arith::AddFOp::create(code.rewriter, code.loc, sum, product)) : product;
  }
  return code.narrow(sum, type);
}

struct ConvertHyperCollapse : OpRewritePattern<moe::HyperCollapseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::HyperCollapseOp op, PatternRewriter &rewriter) const override {
    LinalgCode code(rewriter, op.getLoc());
    SmallVector<OpFoldResult> sizes = code.sizesOf(op.getStreams());
    int64_t streams = op.getStreams().getType().getDimSize(1);
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    for (int64_t i = 0; i < streams; ++i) {
      inputs.append({take(code, op.getWeights(), i, 1), take(code, op.getStreams(), i, 1)});
      maps.append({code.project(2, 0u), code.identity(2)});
    }
    Type element = op.getResult().getType().getElementType();
    rewriter.replaceOp(op, code.map({sizes[0], sizes[2]}, element, inputs, maps,
                                    [&](ArrayRef<Value> elements, Value) {
                                      return buildSum(code, elements, element);
                                    }));
    return success();
  }
};

struct ConvertHyperExpand : OpRewritePattern<moe::HyperExpandOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::HyperExpandOp op, PatternRewriter &rewriter) const override {
    LinalgCode code(rewriter, op.getLoc());
    auto type = op.getResult().getType();
    int64_t streams = type.getDimSize(1);
    // Over [tokens, streams of the result, features]. A single stream's weights have lost theirs.
    AffineMap weight = streams == 1 ? code.project(3, 0u) : code.project(3, {0, 1});
    AffineMap row = code.project(3, {0, 2});
    SmallVector<Value> inputs = {take(code, op.getWeights(), streams, streams), op.getInput()};
    SmallVector<AffineMap> maps = {weight, row};
    for (int64_t j = 0; j < streams; ++j) {
      inputs.append({take(code, op.getWeights(), (2 + j) * streams, streams),
                     take(code, op.getStreams(), j, 1)});
      maps.append({weight, row});
    }
    rewriter.replaceOp(op, code.map(code.sizesOf(op.getStreams()), type.getElementType(), inputs,
                                    maps, [&](ArrayRef<Value> elements, Value) {
                                      return buildSum(code, elements, type.getElementType());
                                    }));
    return success();
  }
};

} // namespace

void mlir::moec::populateHyperConnectionToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertHyperCollapse, ConvertHyperExpand>(patterns.getContext());
}
