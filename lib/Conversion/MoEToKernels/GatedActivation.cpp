#include "GatedActivation.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

Value ActivationMath::sigmoid(CodeBuilder &code, Value x) const {
  int64_t lanes = cast<VectorType>(x.getType()).getNumElements();
  Value one = code.floatSplat(1, lanes);
  Value negative = code.sub(code.floatSplat(0, lanes), x);
  return code.divide(one, code.add(one, code.exp(negative)));
}

Value ActivationMath::tanh(CodeBuilder &code, Value x) const {
  return math::TanhOp::create(code, code.getLoc(), x);
}

Value ActivationMath::divide(CodeBuilder &code, Value x, double divisor) const {
  int64_t lanes = cast<VectorType>(x.getType()).getNumElements();
  return code.divide(x, code.floatSplat(divisor, lanes));
}

namespace {
/// Arithmetic on vectors as wide as the operands. Comparisons are such that NaN passes through.
class ActivationCode {
public:
  ActivationCode(CodeBuilder &code, int64_t lanes, const ActivationMath &functions)
      : code(code), lanes(lanes), functions(functions) {}

  Value constant(double value) { return code.floatSplat(value, lanes); }
  Value scale(Value x, double factor) { return factor == 1 ? x : code.mul(x, constant(factor)); }

  Value sigmoid(Value x) { return functions.sigmoid(code, x); }

  Value atMost(Value x, double limit) {
    Value above = code.compare(arith::CmpFPredicate::OGT, x, constant(limit));
    return code.select(above, constant(limit), x);
  }
  Value atLeast(Value x, double limit) {
    Value below = code.compare(arith::CmpFPredicate::OLT, x, constant(limit));
    return code.select(below, constant(limit), x);
  }

  Value gelu(Value x) {
    Value erf = math::ErfOp::create(code, code.getLoc(), scale(x, 0.70710678118654752));
    return code.mul(scale(x, 0.5), code.add(constant(1), erf));
  }

  /// 0.5 x (1 + tanh(z)) = x sigmoid(2 z), which does not cancel for negative z.
  Value geluTanh(Value x) {
    Value cube = code.mul(code.mul(x, x), x);
    Value z = scale(code.add(x, scale(cube, 0.044715)), 0.79788456080286536);
    return code.mul(x, sigmoid(scale(z, 2)));
  }

  Value swiglu(moe::ActivationAttr a, Value gate, Value up) {
    double limit = a.getLimit();
    if (limit > 0) {
      gate = atMost(gate, limit);
      up = atLeast(atMost(up, limit), -limit);
    }
    if (a.getBeta().value != 0)
      up = code.add(up, constant(a.getBeta()));
    return code.mul(code.mul(gate, sigmoid(scale(gate, a.getAlpha()))), up);
  }

  Value situ(moe::ActivationAttr a, Value gate, Value up) {
    auto saturate = [&](Value x, double bound) {
      return scale(functions.tanh(code, functions.divide(code, x, bound)), bound);
    };
    Value gated = code.mul(saturate(gate, a.getBeta()), sigmoid(gate));
    return code.mul(gated, a.getAlpha().value == 0 ? up : saturate(up, a.getAlpha()));
  }

private:
  CodeBuilder &code;
  int64_t lanes;
  const ActivationMath &functions;
};
} // namespace

Value mlir::moec::buildActivation(CodeBuilder &code, moe::ActivationAttr activation, Value gate,
                                  Value up, const ActivationMath &math) {
  ActivationCode act(code, cast<VectorType>(gate.getType()).getNumElements(), math);
  switch (activation.getKind()) {
  case moe::ActivationKind::silu:
    return code.mul(code.mul(gate, act.sigmoid(gate)), up);
  case moe::ActivationKind::gelu:
    return code.mul(act.gelu(gate), up);
  case moe::ActivationKind::gelu_tanh:
    return code.mul(act.geluTanh(gate), up);
  case moe::ActivationKind::relu:
    return code.mul(act.atLeast(gate, 0), up);
  case moe::ActivationKind::swiglu:
    return act.swiglu(activation, gate, up);
  case moe::ActivationKind::situ:
    return act.situ(activation, gate, up);
  }
  llvm_unreachable("unknown activation");
}
