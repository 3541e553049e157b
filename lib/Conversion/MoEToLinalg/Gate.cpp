//===- Gate.cpp - gated activations as linalg -------------------------------------------------===//

#include "LinalgCode.h"
#include "Patterns.h"

#include "moec/Dialect/MoE/IR/MoE.h"

using namespace mlir;
using namespace mlir::moec;

namespace {

/// The functions of moe.activation's table on f32 scalars. Comparisons let NaN pass.
class ActivationBody {
public:
  ActivationBody(LinalgCode &code, moe::ActivationAttr activation)
      : code(code), b(code.rewriter), loc(code.loc), activation(activation) {}

  Value build(Value gate, Value up) {
    switch (activation.getKind()) {
    case moe::ActivationKind::silu:
      return mul(mul(gate, code.sigmoid(gate)), up);
    case moe::ActivationKind::gelu: {
      Value erf = math::ErfOp::create(b, loc, mul(gate, code.real(0.70710678118654752)));
      return mul(mul(mul(gate, code.real(0.5)), add(code.real(1.0), erf)), up);
    }
    case moe::ActivationKind::gelu_tanh: {
      // 0.5 x (1 + tanh(z)) = x sigmoid(2 z), which does not cancel for negative z.
      Value cube = mul(mul(gate, gate), gate);
      Value z = mul(add(gate, mul(cube, code.real(0.044715))), code.real(0.79788456080286536));
      return mul(mul(gate, code.sigmoid(add(z, z))), up);
    }
    case moe::ActivationKind::relu:
      return mul(atLeast(gate, 0), up);
    case moe::ActivationKind::swiglu: {
      if (double limit = activation.getLimit(); limit > 0) {
        gate = atMost(gate, limit);
        up = atLeast(atMost(up, limit), -limit);
      }
      up = add(up, code.real(activation.getBeta()));
      return mul(mul(gate, code.sigmoid(mul(gate, code.real(activation.getAlpha())))), up);
    }
    case moe::ActivationKind::situ: {
      Value gated = mul(saturate(gate, activation.getBeta()), code.sigmoid(gate));
      return mul(gated,
                 activation.getAlpha().value == 0 ? up : saturate(up, activation.getAlpha()));
    }
    }
    llvm_unreachable("unknown activation");
  }

private:
  Value mul(Value x, Value y) { return arith::MulFOp::create(b, loc, x, y); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, loc, x, y); }
  Value saturate(Value x, double bound) {
    Value ratio = arith::DivFOp::create(b, loc, x, code.real(bound));
    return mul(code.real(bound), math::TanhOp::create(b, loc, ratio));
  }
  Value limit(Value x, double limit, arith::CmpFPredicate beyond) {
    Value isBeyond = arith::CmpFOp::create(b, loc, beyond, x, code.real(limit));
    return arith::SelectOp::create(b, loc, isBeyond, code.real(limit), x);
  }
  Value atMost(Value x, double most) { return limit(x, most, arith::CmpFPredicate::OGT); }
  Value atLeast(Value x, double least) { return limit(x, least, arith::CmpFPredicate::OLT); }

  LinalgCode &code;
  OpBuilder &b;
  Location loc;
  moe::ActivationAttr activation;
};

struct ConvertGate : OpRewritePattern<moe::GateOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(moe::GateOp op, PatternRewriter &rewriter) const override {
    LinalgCode code(rewriter, op.getLoc());
    Type element = op.getResult().getType().getElementType();
    Value inputs[] = {op.getGate(), op.getUp()};
    AffineMap maps[] = {code.identity(2), code.identity(2)};
    rewriter.replaceOp(op, code.map(code.sizesOf(op.getGate()), element, inputs, maps,
                                    [&](ArrayRef<Value> elements, Value) {
                                      ActivationBody body(code, op.getActivation());
                                      return code.narrow(body.build(code.widen(elements[0]),
                                                                    code.widen(elements[1])),
                                                         element);
                                    }));
    return success();
  }
};

} // namespace

void mlir::moec::populateGateToLinalgPatterns(RewritePatternSet &patterns) {
  patterns.add<ConvertGate>(patterns.getContext());
}
