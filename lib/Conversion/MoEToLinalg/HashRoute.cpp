//===- HashRoute.cpp - hash_route as linalg ---------------------------------------------------===//

#include "LinalgCode.h"
#include "Patterns.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

struct ConvertHashRoute : OpRewritePattern<moe::HashRouteOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::HashRouteOp op, PatternRewriter &rewriter) const override {
    LinalgCode code(rewriter, op.getLoc());
    Location loc = op.getLoc();
    RankedTensorType table = op.getTable().getType();
    int64_t experts = op.getLogits().getType().getDimSize(1);
    SmallVector<OpFoldResult> sizes = {code.sizesOf(op.getTokens())[0],
                                       rewriter.getIndexAttr(table.getDimSize(1))};
    AffineMap all = code.identity(2), tokens = code.project(2, 0u);
    auto index = [&](unsigned dimension) -> Value {
      return linalg::IndexOp::create(rewriter, loc, dimension);
    };

    Value indices =
        code.map(sizes, rewriter.getI32Type(), op.getTokens(), tokens,
                 [&](ArrayRef<Value> elements, Value) -> Value {
                   Value row = clamp(code, elements[0], table.getDimSize(0));
                   Value expert = tensor::ExtractOp::create(rewriter, loc, op.getTable(),
                                                            ValueRange{row, index(1)});
                   return arith::IndexCastOp::create(rewriter, loc, rewriter.getI32Type(),
                                                     clamp(code, expert, experts));
                 });
    Value scores =
        code.map(sizes, code.f32(), indices, all, [&](ArrayRef<Value> elements, Value) -> Value {
          Value expert =
              arith::IndexCastOp::create(rewriter, loc, rewriter.getIndexType(), elements[0]);
          Value logit = tensor::ExtractOp::create(rewriter, loc, op.getLogits(),
                                                  ValueRange{index(0), expert});
          return buildScore(code, op.getScore(), logit);
        });
    SmallVector<Value> inputs = {scores};
    SmallVector<AffineMap> maps = {all};
    if (op.getRenormalize()) {
      Value sum =
          code.generic(2, 1, scores, all, code.filled(sizes[0], 1e-20), tokens,
                       [&](ArrayRef<Value> elements, Value accumulator) -> Value {
                         return arith::AddFOp::create(rewriter, loc, accumulator, elements[0]);
                       });
      inputs.push_back(sum);
      maps.push_back(tokens);
    }
    Value weights =
        code.map(sizes, code.f32(), inputs, maps, [&](ArrayRef<Value> elements, Value) -> Value {
          Value weight = elements[0];
          if (op.getRenormalize())
            weight = arith::DivFOp::create(rewriter, loc, weight, elements[1]);
          return arith::MulFOp::create(rewriter, loc, weight,
                                       code.real(op.getScale().convertToDouble()));
        });
    rewriter.replaceOp(op, {weights, indices});
    return success();
  }

private:
  /// An integer as an index below `count`.
  static Value clamp(LinalgCode &code, Value integer, int64_t count) {
    OpBuilder &b = code.rewriter;
    Value index = arith::IndexCastOp::create(b, code.loc, b.getIndexType(), integer);
    index = arith::MaxSIOp::create(b, code.loc, index, code.index(0));
    return arith::MinSIOp::create(b, code.loc, index, code.index(count - 1));
  }

  static Value buildScore(LinalgCode &code, moe::ScoreFunction function, Value logit) {
    if (function == moe::ScoreFunction::sigmoid)
      return code.sigmoid(logit);
    return math::SqrtOp::create(code.rewriter, code.loc, code.softplus(logit));
  }
};

} // namespace

void mlir::moec::populateHashRouteToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertHashRoute>(patterns.getContext());
}
