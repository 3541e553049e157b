//===- DecayGate.cpp - decay_gate as linalg ---------------------------------------------------===//

#include "LinalgCode.h"
#include "Patterns.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

struct ConvertDecayGate : OpRewritePattern<moe::DecayGateOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::DecayGateOp op, PatternRewriter &rewriter) const override {
    LinalgCode code(rewriter, op.getLoc());
    auto type = op.getInput().getType();
    unsigned rank = type.getRank();
    int64_t heads = type.getDimSize(1);
    // What a checkpoint has behind the heads is padding.
    Value logarithms = op.getALog();
    if (op.getALog().getType().getDimSize(0) != heads) {
      SmallVector<OpFoldResult> offset = {rewriter.getIndexAttr(0)};
      SmallVector<OpFoldResult> size = {rewriter.getIndexAttr(heads)};
      SmallVector<OpFoldResult> stride = {rewriter.getIndexAttr(1)};
      logarithms =
          tensor::ExtractSliceOp::create(rewriter, op.getLoc(), logarithms, offset, size, stride);
    }
    SmallVector<unsigned> behindTokens = llvm::to_vector(llvm::seq<unsigned>(1, rank));
    Value inputs[] = {op.getInput(), logarithms, op.getBias()};
    AffineMap maps[] = {code.identity(rank), code.project(rank, 1u),
                        code.project(rank, behindTokens)};
    Type element = op.getResult().getType().getElementType();
    std::optional<APFloat> bound = op.getLowerBound();
    rewriter.replaceOp(
        op, code.map(code.sizesOf(op.getInput()), element, inputs, maps,
                     [&](ArrayRef<Value> elements, Value) -> Value {
                       Value factor =
                           math::ExpOp::create(rewriter, op.getLoc(), code.widen(elements[1]));
                       Value x = arith::AddFOp::create(
                           rewriter, op.getLoc(), code.widen(elements[0]), code.widen(elements[2]));
                       Value y;
                       if (bound) {
                         y = code.sigmoid(arith::MulFOp::create(rewriter, op.getLoc(), factor, x));
                         factor = code.real(bound->convertToDouble());
                       } else {
                         y = arith::NegFOp::create(rewriter, op.getLoc(), code.softplus(x));
                       }
                       y = arith::MulFOp::create(rewriter, op.getLoc(), factor, y);
                       return code.narrow(y, element);
                     }));
    return success();
  }
};

} // namespace

void mlir::moec::populateDecayGateToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertDecayGate>(patterns.getContext());
}
