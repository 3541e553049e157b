#include "ApproximateMath.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

static constexpr double log2OfE = 1.4426950408889634;

static Value buildInstruction(CodeBuilder &code, StringRef name, Value x) {
  return LLVM::InlineAsmOp::create(code, code.getLoc(), code.getF32Type(), x,
                                   (name + " $0, $1;").str(), "=f,f",
                                   /*has_side_effects=*/false, /*is_align_stack=*/false,
                                   LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr())
      .getRes();
}

/// 1 / (1 + exp(factor x)) of a scalar; 0 and 1 where the power overflows and underflows.
static Value buildLogistic(CodeBuilder &code, Value x, double factor) {
  Value exponent = code.mul(x, code.float32(factor * log2OfE));
  Value power = buildInstruction(code, "ex2.approx.ftz.f32", exponent);
  return buildInstruction(code, "rcp.approx.ftz.f32", code.add(power, code.float32(1)));
}

static Value forEachLane(CodeBuilder &code, Value vector, function_ref<Value(Value)> function) {
  SmallVector<Value> results;
  for (int64_t i = 0; i < cast<VectorType>(vector.getType()).getNumElements(); ++i)
    results.push_back(function(code.lane(vector, i)));
  return code.fromLanes(results);
}

Value ApproximateMath::sigmoid(CodeBuilder &code, Value x) const {
  return forEachLane(code, x, [&](Value lane) { return buildLogistic(code, lane, -1); });
}

/// 1 - 2 / (1 + exp(2 x)); near 0, where that cancels, x - x^3 / 3, off by 2 x^4 / 15 of the value.
Value ApproximateMath::tanh(CodeBuilder &code, Value x) const {
  return forEachLane(code, x, [&](Value lane) {
    Value far = code.fma(code.float32(-2), buildLogistic(code, lane, 2), code.float32(1));
    Value cube = code.mul(code.mul(lane, lane), lane);
    Value near = code.fma(cube, code.float32(-1.0 / 3), lane);
    Value magnitude = math::AbsFOp::create(code, code.getLoc(), lane);
    constexpr double border = 0.04;
    Value isNear = code.compare(arith::CmpFPredicate::OLT, magnitude, code.float32(border));
    return code.select(isNear, near, far);
  });
}

Value ApproximateMath::divide(CodeBuilder &code, Value x, double divisor) const {
  int64_t lanes = cast<VectorType>(x.getType()).getNumElements();
  return code.mul(x, code.floatSplat(1 / divisor, lanes));
}
