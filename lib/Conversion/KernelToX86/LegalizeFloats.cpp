//===- LegalizeFloats.cpp - bf16 and f16 through f32 ------------------------------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"

#include "moec/Target/TargetDescription.h"

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

struct LegalizeFloats : moec::impl::LegalizeFloatsPassBase<LegalizeFloats> {
  void runOnOperation() override {
    MLIRContext *context = &getContext();
    Type bf16 = BFloat16Type::get(context), f16 = Float16Type::get(context);
    TypeConverter converter;
    arith::populateEmulateUnsupportedFloatsConversions(converter, {bf16, f16},
                                                       Float32Type::get(context));
    RewritePatternSet throughF32(context);
    arith::populateEmulateUnsupportedFloatsPatterns(throughF32, converter);
    FrozenRewritePatternSet frozenThroughF32(std::move(throughF32));
    ConversionTarget target(*context);
    arith::populateEmulateUnsupportedFloatsLegality(target, converter);

    // Without instructions for it LLVM would call a library to round to bf16.
    // Every GPU has them.
    FailureOr<TargetDescription> machine = TargetDescription::get(getOperation());
    if (failed(machine))
      return signalPassFailure();
    RewritePatternSet asIntegers(context);
    if (machine->isCPU()) {
      arith::populateExpandBFloat16Patterns(asIntegers);
      asIntegers.add<RoundToBF16>(context, PatternBenefit(2));
    }
    arith::populateCeilFloorDivExpandOpsPatterns(asIntegers);
    FrozenRewritePatternSet frozenAsIntegers(std::move(asIntegers));

    for (func::FuncOp kernel : getKernels(getOperation())) {
      if (failed(applyPartialConversion(kernel, target, frozenThroughF32)))
        return signalPassFailure();
      if (failed(applyPatternsGreedily(kernel, frozenAsIntegers)))
        return signalPassFailure();
    }
  }
};
} // namespace
