//===- ExpandMath.cpp - elementary functions without a C library ------------------------------===//

#include "moec/Conversion/Passes.h"

#include "KernelFunction.h"
#include "MathFunctions.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"

namespace mlir::moec {
#define GEN_PASS_DEF_EXPANDMATHPASS
#include "moec/Conversion/Passes.h.inc"
} // namespace mlir::moec

using namespace mlir;
using namespace mlir::moec;

namespace {

/// An op on bf16 or f16: computed in f32 and rounded once.
struct WidenNarrowMath : RewritePattern {
  explicit WidenNarrowMath(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/2, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!isa<math::MathDialect>(op->getDialect()) || op->getNumResults() != 1)
      return failure();
    Type type = op->getResult(0).getType();
    if (!getElementTypeOrSelf(type).isBF16() && !getElementTypeOrSelf(type).isF16())
      return failure();
    ElementCode code(rewriter, op->getLoc(), type, false);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(isa<FloatType>(getElementTypeOrSelf(operand))
                             ? code.extend(code.f32(), operand)
                             : operand);
    Operation *wide = rewriter.create(op->getLoc(), op->getName().getIdentifier(), operands,
                                      code.f32(), op->getAttrs());
    rewriter.replaceOp(op, code.truncate(type, wide->getResult(0)));
    return success();
  }
};

/// Remainders; those of bf16 and f16 are the same in f32, and have room in their own type.
struct ExpandRemainder : OpRewritePattern<arith::RemFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::RemFOp op, PatternRewriter &rewriter) const override {
    Type type = op.getType(), element = getElementTypeOrSelf(type);
    ElementCode code(rewriter, op.getLoc(), type, false);
    if (element.isF32() || element.isF64()) {
      rewriter.replaceOp(op, buildRemainder(code, op.getLhs(), op.getRhs()));
      return success();
    }
    if (!element.isBF16() && !element.isF16())
      return failure();
    Value wide = buildRemainder(code, code.extend(code.f32(), op.getLhs()),
                                code.extend(code.f32(), op.getRhs()));
    rewriter.replaceOp(op, code.truncate(type, wide));
    return success();
  }
};

/// Replaces an op on f32, and on f64 where `inF64`, by what `Build` makes of its operands.
template <typename OpTy>
struct ExpandFunction : OpRewritePattern<OpTy> {
  using Build = std::function<Value(ElementCode &, OpTy)>;
  ExpandFunction(MLIRContext *context, bool hasFMA, bool inF64, Build build)
      : OpRewritePattern<OpTy>(context), hasFMA(hasFMA), inF64(inF64), build(std::move(build)) {}

  LogicalResult matchAndRewrite(OpTy op, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    if (!element.isF32() && !(inF64 && element.isF64()))
      return failure();
    ElementCode code(rewriter, op.getLoc(), op->getResult(0).getType(), hasFMA);
    rewriter.replaceOp(op, build(code, op));
    return success();
  }

  bool hasFMA, inF64;
  Build build;
};

struct ExpandMath : moec::impl::ExpandMathPassBase<ExpandMath> {
  template <typename OpTy>
  void add(RewritePatternSet &patterns, bool hasFMA, Value (*build)(ElementCode &, Value),
           bool inF64 = false) {
    patterns.add<ExpandFunction<OpTy>>(
        &getContext(), hasFMA, inF64,
        [build](ElementCode &code, OpTy op) { return build(code, op->getOperand(0)); });
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<TargetDescription> target = TargetDescription::get(module);
    if (failed(target))
      return signalPassFailure();
    bool fma = target->isCUDA() || target->has("fma");

    RewritePatternSet patterns(&getContext());
    patterns.add<WidenNarrowMath, ExpandRemainder>(&getContext());
    add<math::ExpOp>(patterns, fma, buildExp, /*inF64=*/true);
    add<math::LogOp>(patterns, fma, buildLog, /*inF64=*/true);
    add<math::TanhOp>(patterns, fma, buildTanh, /*inF64=*/true);
    add<math::ErfOp>(patterns, fma, buildErf, /*inF64=*/true);
    add<math::Exp2Op>(patterns, fma, buildExp2);
    add<math::ExpM1Op>(patterns, fma, buildExpM1);
    add<math::Log1pOp>(patterns, fma, buildLog1P);
    add<math::Log2Op>(patterns, fma, buildLog2);
    add<math::Log10Op>(patterns, fma, buildLog10);
    add<math::SinOp>(
        patterns, fma, +[](ElementCode &code, Value x) { return buildSine(code, x, false); },
        /*inF64=*/true);
    add<math::CosOp>(
        patterns, fma, +[](ElementCode &code, Value x) { return buildSine(code, x, true); },
        /*inF64=*/true);
    add<math::RsqrtOp>(
        patterns, fma,
        +[](ElementCode &code, Value x) {
          return code.div(code.real(x.getType(), 1.0), code.sqrt(x));
        },
        /*inF64=*/true);
    patterns.add<ExpandFunction<math::PowFOp>>(&getContext(), fma, false,
                                               [](ElementCode &code, math::PowFOp op) {
                                                 return buildPower(code, op.getLhs(), op.getRhs());
                                               });
    if (!fma)
      patterns.add<ExpandFunction<math::FmaOp>>(
          &getContext(), fma, true, [](ElementCode &code, math::FmaOp op) {
            return code.add(code.mul(op.getA(), op.getB()), op.getC());
          });
    math::populateExpansionPatterns(
        patterns, {"sinh", "cosh", "tan", "asinh", "acosh", "atanh", "fpowi", "clampf", "sincos"});
    populateMathPolynomialApproximationPatterns(patterns, [](StringRef name) {
      return llvm::is_contained(
          {"math.atan", "math.atan2", "math.asin", "math.acos", "math.cbrt", "math.erfc"}, name);
    });

    FrozenRewritePatternSet frozen(std::move(patterns));
    for (func::FuncOp kernel : getKernels(module)) {
      // Folding constants here would evaluate functions at other precisions than the kernels do.
      GreedyRewriteConfig config;
      config.enableFolding(false).enableConstantCSE(false);
      if (failed(applyPatternsGreedily(kernel, frozen, config)))
        return signalPassFailure();
      reportRest(kernel);
    }
  }

  /// What is neither expanded nor an instruction would become a call.
  void reportRest(func::FuncOp kernel) {
    kernel.walk([&](Operation *op) {
      if (!isa<math::MathDialect>(op->getDialect()) ||
          isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp, math::CountLeadingZerosOp,
              math::CountTrailingZerosOp, math::CtPopOp, math::FloorOp, math::FmaOp,
              math::IsFiniteOp, math::IsInfOp, math::IsNaNOp, math::IsNormalOp, math::RoundEvenOp,
              math::RoundOp, math::SqrtOp, math::TruncOp>(op))
        return;
      op->emitError() << "'" << op->getName() << "' on " << op->getOperand(0).getType()
                      << " in kernel '" << kernel.getName()
                      << "' has no code for a CPU; convert the value to f32 first";
      signalPassFailure();
    });
  }
};

} // namespace
