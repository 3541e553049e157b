// math: computed in double precision, rounded once.
#include "Models.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace mlir::moec::moe;

/// Halves to even, whatever the machine's rounding mode.
static double roundHalfToEven(double x) {
  double down = std::floor(x), part = x - down;
  if (part < 0.5 || (part == 0.5 && std::fmod(down, 2) == 0))
    return std::copysign(down, x);
  return std::copysign(down + 1, x);
}

static int64_t integerPower(int64_t base, int64_t exponent) {
  if (exponent < 0) // 1 / base^-exponent, rounded towards zero
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1;
  for (auto factor = static_cast<uint64_t>(base); exponent; exponent >>= 1, factor *= factor)
    if (exponent & 1)
      result *= factor;
  return static_cast<int64_t>(result);
}

static void attachFunctions(MLIRContext *context) {
#define UNARY(Op, expression)                                                                      \
  attachElementwise<math::Op>(context, [](Operation *) {                                           \
    return unaryReal([](double x) -> double { return expression; });                               \
  })
  UNARY(AbsFOp, std::fabs(x));
  UNARY(AcosOp, std::acos(x));
  UNARY(AcoshOp, std::acosh(x));
  UNARY(AsinOp, std::asin(x));
  UNARY(AsinhOp, std::asinh(x));
  UNARY(AtanOp, std::atan(x));
  UNARY(AtanhOp, std::atanh(x));
  UNARY(CbrtOp, std::cbrt(x));
  UNARY(CeilOp, std::ceil(x));
  UNARY(CosOp, std::cos(x));
  UNARY(CoshOp, std::cosh(x));
  UNARY(ErfOp, std::erf(x));
  UNARY(ErfcOp, std::erfc(x));
  UNARY(ExpOp, std::exp(x));
  UNARY(Exp2Op, std::exp2(x));
  UNARY(ExpM1Op, std::expm1(x));
  UNARY(FloorOp, std::floor(x));
  UNARY(LogOp, std::log(x));
  UNARY(Log10Op, std::log10(x));
  UNARY(Log1pOp, std::log1p(x));
  UNARY(Log2Op, std::log2(x));
  UNARY(RoundOp, std::round(x));
  UNARY(RoundEvenOp, roundHalfToEven(x));
  UNARY(RsqrtOp, 1 / std::sqrt(x));
  UNARY(SinOp, std::sin(x));
  UNARY(SinhOp, std::sinh(x));
  UNARY(SqrtOp, std::sqrt(x));
  UNARY(TanOp, std::tan(x));
  UNARY(TanhOp, std::tanh(x));
  UNARY(TruncOp, std::trunc(x));
#undef UNARY

  attachElementwise<math::Atan2Op>(context, [](Operation *) {
    return binaryReal([](double a, double b) { return std::atan2(a, b); });
  });
  attachElementwise<math::CopySignOp>(context, [](Operation *) {
    return binaryReal([](double a, double b) { return std::copysign(a, b); });
  });
  attachElementwise<math::PowFOp>(context, [](Operation *) {
    return binaryReal([](double a, double b) { return std::pow(a, b); });
  });
  attachElementwise<math::FPowIOp>(context, [](Operation *) -> ScalarFunction {
    return [](const Scalar *x) {
      return Scalar::fromReal(std::pow(x[0].real, static_cast<double>(x[1].integer)));
    };
  });
  attachElementwise<math::FmaOp>(context, [](Operation *) -> ScalarFunction {
    return
        [](const Scalar *x) { return Scalar::fromReal(std::fma(x[0].real, x[1].real, x[2].real)); };
  });
  attachElementwise<math::ClampFOp>(context, [](Operation *) -> ScalarFunction {
    return [](const Scalar *x) {
      double value = x[0].real, least = x[1].real, most = x[2].real;
      return Scalar::fromReal(value < least ? least : value > most ? most : value);
    };
  });
}

static void attachPredicates(MLIRContext *context) {
#define PREDICATE(Op, function)                                                                    \
  attachElementwise<math::Op>(context, [](Operation *) -> ScalarFunction {                         \
    return [](const Scalar *x) { return Scalar::fromInteger(function(x[0].real)); };               \
  })
  PREDICATE(IsFiniteOp, std::isfinite);
  PREDICATE(IsInfOp, std::isinf);
  PREDICATE(IsNaNOp, std::isnan);
#undef PREDICATE
}

static void attachIntegerFunctions(MLIRContext *context) {
  attachElementwise<math::AbsIOp>(context, [](Operation *) -> ScalarFunction {
    return [](const Scalar *x) {
      // Unsigned, so that the least integer stays itself.
      auto value = static_cast<uint64_t>(x[0].integer);
      return Scalar::fromInteger(static_cast<int64_t>(x[0].integer < 0 ? 0 - value : value));
    };
  });
  attachElementwise<math::IPowIOp>(context, [](Operation *) -> ScalarFunction {
    return [](const Scalar *x) {
      return Scalar::fromInteger(integerPower(x[0].integer, x[1].integer));
    };
  });
  attachElementwise<math::CtPopOp>(context, [](math::CtPopOp op) -> ScalarFunction {
    return [type = *ScalarType::get(getElementTypeOrSelf(op.getType()))](const Scalar *x) {
      return Scalar::fromInteger(llvm::popcount(type.getUnsigned(x[0])));
    };
  });
  attachElementwise<math::CountTrailingZerosOp>(
      context, [](math::CountTrailingZerosOp op) -> ScalarFunction {
        return [type = *ScalarType::get(getElementTypeOrSelf(op.getType()))](const Scalar *x) {
          return Scalar::fromInteger(
              std::min<int64_t>(llvm::countr_zero(type.getUnsigned(x[0])), type.getBits()));
        };
      });
  attachElementwise<math::CountLeadingZerosOp>(
      context, [](math::CountLeadingZerosOp op) -> ScalarFunction {
        return [type = *ScalarType::get(getElementTypeOrSelf(op.getType()))](const Scalar *x) {
          return Scalar::fromInteger(llvm::countl_zero(type.getUnsigned(x[0])) - 64 +
                                     static_cast<int64_t>(type.getBits()));
        };
      });
}

void mlir::moec::moe::registerMathModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    attachFunctions(context);
    attachPredicates(context);
    attachIntegerFunctions(context);
  });
}
