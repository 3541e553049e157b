//===- LegalizeFloats.cpp - bf16 and f16 through f32 ------------------------------------------===//

#include "moec/Conversion/Passes.h"
#include "moec/Target/TargetDescription.h"

#include "ElementCode.h"
#include "KernelFunction.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::moec {
#define GEN_PASS_DEF_LEGALIZEFLOATSPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

namespace {
/// f32 to bf16, to nearest even, NaN staying NaN: on 32-bit integers up to the last step.
/// Upstream's expansion selects between 16-bit ones by a comparison of 32-bit floats, which LLVM
/// takes apart lane by lane.
struct RoundToBF16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Value input = op.getIn();
    if (!getElementTypeOrSelf(input.getType()).isF32() ||
        !getElementTypeOrSelf(op.getType()).isBF16())
      return failure();
    Location loc = op.getLoc();
    auto withElement = [&](Type element) -> Type {
      auto shaped = dyn_cast<ShapedType>(input.getType());
      return shaped ? shaped.clone(element) : element;
    };
    Type i32 = withElement(rewriter.getI32Type());
    auto constant = [&](int32_t value) -> Value {
      TypedAttr attribute = rewriter.getI32IntegerAttr(value);
      if (auto shaped = dyn_cast<ShapedType>(i32))
        attribute = DenseElementsAttr::get(shaped, Attribute(attribute));
      return arith::ConstantOp::create(rewriter, loc, attribute);
    };
    Value bits = arith::BitcastOp::create(rewriter, loc, i32, input);
    Value half = arith::ShRUIOp::create(rewriter, loc, bits, constant(16));
    Value odd = arith::AndIOp::create(rewriter, loc, half, constant(1));
    Value up = arith::AddIOp::create(rewriter, loc, odd, constant(0x7fff));
    Value rounded = arith::AddIOp::create(rewriter, loc, bits, up);
    Value quiet = arith::OrIOp::create(rewriter, loc, bits, constant(0x400000));
    Value isNaN = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, input, input);
    Value chosen = arith::SelectOp::create(rewriter, loc, isNaN, quiet, rounded);
    Value high = arith::ShRUIOp::create(rewriter, loc, chosen, constant(16));
    Value narrow = arith::TruncIOp::create(rewriter, loc, withElement(rewriter.getI16Type()), high);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), narrow);
    return success();
  }
};

/// f16 to f32.
struct ExtendHalf : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn().getType()).isF16() ||
        !getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    ElementCode code(rewriter, op.getLoc(), op.getType(), false);
    Type f32 = code.f32(), i32 = code.integerLike(f32), i16 = code.like(rewriter.getI16Type());
    Value half = arith::ExtUIOp::create(rewriter, op.getLoc(), i32, code.bitcast(i16, op.getIn()));
    Value magnitude = code.shiftLeft(code.bitAnd(half, code.integer(i32, 0x7fff)), 13);
    // The exponents differ by 112, for subnormal numbers, too.
    Value number = code.mul(code.bitcast(f32, magnitude), code.real(f32, 0x1p112));
    Value isFinite =
        code.compare(arith::CmpIPredicate::ult, magnitude, code.integer(i32, 0x7c00 << 13));
    Value other = code.bitOr(magnitude, code.integer(i32, 0x7f800000));
    Value bits = code.select(isFinite, code.bitcast(i32, number), other);
    Value sign = code.shiftLeft(code.bitAnd(half, code.integer(i32, 0x8000)), 16);
    rewriter.replaceOp(op, code.bitcast(f32, code.bitOr(bits, sign)));
    return success();
  }
};

/// f32 to f16, to nearest even, NaN staying NaN.
struct RoundToHalf : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn().getType()).isF32() ||
        !getElementTypeOrSelf(op.getType()).isF16())
      return failure();
    ElementCode code(rewriter, op.getLoc(), op.getType(), false);
    Type f32 = code.f32(), i32 = code.integerLike(f32), i16 = code.like(rewriter.getI16Type());
    auto integer = [&](int64_t value) { return code.integer(i32, value); };
    auto below = [&](Value a, int64_t b) {
      return code.compare(arith::CmpIPredicate::ult, a, integer(b));
    };
    Value bits = code.bitcast(i32, op.getIn());
    Value magnitude = code.bitAnd(bits, integer(0x7fffffff));
    // Normal numbers: the exponent's bias becomes smaller by 112, the last 13 bits are rounded
    // away.
    Value odd = code.bitAnd(code.shiftRight(magnitude, 13), integer(1));
    Value normal = code.addInteger(code.subInteger(magnitude, integer(112 << 23)),
                                   code.addInteger(odd, integer(0xfff)));
    normal = code.shiftRight(normal, 13);
    // Subnormal ones: in the sum with 1/2 the last bit counts as much as that of the result.
    Value half = code.real(f32, 0.5);
    Value subnormal = code.subInteger(
        code.bitcast(i32, code.add(code.bitcast(f32, magnitude), half)), code.bitcast(i32, half));
    Value finite = code.select(below(magnitude, 0x38800000), subnormal, normal);
    Value payload = code.bitAnd(code.shiftRight(magnitude, 13), integer(0x3ff));
    Value infinityOrNaN = code.select(below(magnitude, 0x7f800001), integer(0x7c00),
                                      code.bitOr(payload, integer(0x7e00)));
    Value result = code.select(below(magnitude, 0x47800000), finite, infinityOrNaN);
    Value sign = code.bitAnd(code.shiftRight(bits, 16), integer(0x8000));
    Value narrow = arith::TruncIOp::create(rewriter, op.getLoc(), i16, code.bitOr(result, sign));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), narrow);
    return success();
  }
};

/// f64 to bf16 or f16 by way of f32. There it is rounded to odd: towards zero, and the last bit set
/// where that is not exact, so that the second rounding sees on which side of a tie the number was.
struct RoundWideFloats : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    Type element = getElementTypeOrSelf(op.getType());
    if (!getElementTypeOrSelf(x.getType()).isF64() || !(element.isF16() || element.isBF16()))
      return failure();
    ElementCode code(rewriter, op.getLoc(), op.getType(), false);
    Type f32 = code.f32(), i32 = code.integerLike(f32);
    Value nearest = code.truncate(f32, x), back = code.extend(code.f64(), nearest);
    Value bits = code.bitcast(i32, nearest);
    Value isLarger = code.compare(arith::CmpFPredicate::OGT, code.abs(back), code.abs(x));
    bits = code.select(isLarger, code.subInteger(bits, code.integer(i32, 1)), bits);
    Value isInexact = code.compare(arith::CmpFPredicate::ONE, back, x);
    bits = code.select(isInexact, code.bitOr(bits, code.integer(i32, 1)), bits);
    rewriter.replaceOp(op, code.truncate(op.getType(), code.bitcast(f32, bits)));
    return success();
  }
};

/// bf16 or f16 to f64 by way of f32.
struct ExtendToWideFloats : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op.getIn().getType());
    if (!getElementTypeOrSelf(op.getType()).isF64() || !(element.isF16() || element.isBF16()))
      return failure();
    ElementCode code(rewriter, op.getLoc(), op.getType(), false);
    rewriter.replaceOp(op, code.extend(op.getType(), code.extend(code.f32(), op.getIn())));
    return success();
  }
};

struct LegalizeFloats : moec::impl::LegalizeFloatsPassBase<LegalizeFloats> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    FailureOr<TargetDescription> target = TargetDescription::get(getOperation());
    if (failed(target))
      return signalPassFailure();
    Type bf16 = BFloat16Type::get(context), f16 = Float16Type::get(context);
    TypeConverter converter;
    arith::populateEmulateUnsupportedFloatsConversions(converter, {bf16, f16},
                                                       Float32Type::get(context));
    RewritePatternSet throughF32(context);
    arith::populateEmulateUnsupportedFloatsPatterns(throughF32, converter);
    FrozenRewritePatternSet frozenThroughF32(std::move(throughF32));
    ConversionTarget legal(*context);
    arith::populateEmulateUnsupportedFloatsLegality(legal, converter);

    // Without instructions for it LLVM would call a library to round to bf16, or to convert f16.
    // Every GPU has them.
    RewritePatternSet asIntegers(context);
    if (target->isCPU()) {
      arith::populateExpandBFloat16Patterns(asIntegers);
      asIntegers.add<RoundToBF16, RoundWideFloats, ExtendToWideFloats>(context, PatternBenefit(2));
      if (!target->has("f16c"))
        asIntegers.add<ExtendHalf, RoundToHalf>(context);
    }
    arith::populateCeilFloorDivExpandOpsPatterns(asIntegers);
    FrozenRewritePatternSet frozenAsIntegers(std::move(asIntegers));

    for (func::FuncOp kernel : getKernels(getOperation())) {
      if (failed(applyPartialConversion(kernel, legal, frozenThroughF32)))
        return signalPassFailure();
      if (failed(applyPatternsGreedily(kernel, frozenAsIntegers)))
        return signalPassFailure();
    }
  }
};
} // namespace
