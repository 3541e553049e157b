//===- DequantizeCodes.cpp - codes with scales as plain numbers -------------------------------===//

#include "LinalgCode.h"
#include "Patterns.h"
#include "SmallFloats.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

struct ConvertDequantizeCodes : OpRewritePattern<moe::DequantizeCodesOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::DequantizeCodesOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    LinalgCode code(rewriter, loc);
    auto type = cast<RankedTensorType>(op.getResult().getType());
    unsigned rank = type.getRank();
    SmallVector<OpFoldResult> sizes =
        getAsIndexOpFoldResult(rewriter.getContext(), type.getShape());
    // Blocks may be cut short at the ends, so scales and words are looked up by their indices.
    auto lookUp = [&](Value tensor, int64_t rowsOf, int64_t columnsOf) -> Value {
      SmallVector<Value> place;
      for (unsigned dim = 0; dim < rank; ++dim) {
        Value index = linalg::IndexOp::create(rewriter, loc, dim);
        int64_t divisor = dim + 2 == rank ? rowsOf : dim + 1 == rank ? columnsOf : 1;
        place.push_back(divisor == 1
                            ? index
                            : arith::DivUIOp::create(rewriter, loc, index, code.index(divisor)));
      }
      return tensor::ExtractOp::create(rewriter, loc, tensor, place);
    };
    bool isInt4 = op.getFormat() == moe::CodeFormat::int4;
    SmallVector<Value> inputs;
    SmallVector<AffineMap> maps;
    if (!isInt4) {
      inputs.push_back(op.getCodes());
      maps.push_back(code.identity(rank));
    }
    Type element = type.getElementType();
    rewriter.replaceOp(
        op, code.map(sizes, element, inputs, maps, [&](ArrayRef<Value> elements, Value) {
          constexpr int64_t ofWord = moe::DequantizeCodesOp::int4CodesOfWord;
          Value number =
              isInt4 ? decodeInt4(code, lookUp(op.getCodes(), 1, ofWord),
                                  linalg::IndexOp::create(rewriter, loc, rank - 1))
                     : decodeFloat8(code, elements[0], op.getFormat() == moe::CodeFormat::f8e4m3);
          Value scale = lookUp(op.getScales(), op.getBlock()[0], op.getBlock()[1]);
          scale = scale.getType().isInteger() ? decodeE8M0(code, scale) : code.widen(scale);
          return code.narrow(arith::MulFOp::create(rewriter, loc, number, scale), element);
        }));
    return success();
  }

private:
  /// The value of the code of column `column` of a word of eight.
  static Value decodeInt4(LinalgCode &code, Value word, Value column) {
    OpBuilder &b = code.rewriter;
    Location loc = code.loc;
    auto integer = [&](int64_t value) -> Value {
      return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
    };
    Value place = arith::IndexCastOp::create(b, loc, b.getI32Type(), column);
    place = arith::AndIOp::create(b, loc, place, integer(7));
    Value shift = arith::ShLIOp::create(b, loc, place, integer(2));
    Value bits =
        arith::AndIOp::create(b, loc, arith::ShRUIOp::create(b, loc, word, shift), integer(15));
    return arith::SIToFPOp::create(b, loc, code.f32(),
                                   arith::SubIOp::create(b, loc, bits, integer(8)));
  }
};

} // namespace

void mlir::moec::populateDequantizeCodesToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertDequantizeCodes>(patterns.getContext());
}
