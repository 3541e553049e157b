//===- MathFunctions.cpp - elementary functions as arithmetic ---------------------------------===//
//
// Arguments are reduced by two- or three-part constants whose leading parts have trailing zeros, so
// that the reduction is exact without fused multiply-add, too. Where a Taylor series is short
// enough it is used: no tables of magic numbers.
//
//===------------------------------------------------------------------------------------------===//

#include "MathFunctions.h"

#include <cmath>
#include <limits>
#include <numbers>

using namespace mlir;
using namespace mlir::moec;

using FloatPredicate = arith::CmpFPredicate;
using IntegerPredicate = arith::CmpIPredicate;

namespace {
/// What depends on the precision of a function.
struct Format {
  int mantissaBits, bias;
  double rounder;               ///< adding and subtracting it rounds to an integer
  double ln2High, ln2Low;       ///< n * ln2High is exact for every exponent n
  double lowestExp, highestExp; ///< exp is 0 below, infinite above
  double smallestNormal;
  int expTerms, logTerms; ///< of the series
};
} // namespace

static const Format &getFormat(Type type) {
  static const Format single = {23,     127,  0x1.8p23, 0x1.62e4p-1, 0x1.7f7d1cf79abcap-20,
                                -104.0, 89.0, 0x1p-126, 7,           4};
  static const Format wide = {
      52,        1023, 0x1.8p52, 0x1.62e42fee00000p-1, 0x1.a39ef35793c76p-33, -746.0, 710.0,
      0x1p-1022, 13,   10};
  return getElementTypeOrSelf(type).isF64() ? wide : single;
}

/// 2^n for an integer vector `n` within the exponents of normal numbers.
static Value buildPowerOfTwo(ElementCode &code, Type type, Value n) {
  const Format &format = getFormat(type);
  Value field = code.addInteger(n, code.integer(n.getType(), format.bias));
  return code.bitcast(type, code.shiftLeft(field, format.mantissaBits));
}

namespace {
/// x = n ln 2 + r with |r| <= ln 2 / 2.
struct ReducedExponent {
  Value n, r;
};
} // namespace

static ReducedExponent reduceExponent(ElementCode &code, Value x) {
  Type type = x.getType(), integerType = code.integerLike(type);
  const Format &format = getFormat(type);
  // Adding the rounder leaves the integer in the low bits of the mantissa: no conversion, and NaN
  // does no harm.
  Value rounder = code.real(type, format.rounder);
  Value shifted = code.multiplyAdd(x, code.real(type, std::numbers::log2e), rounder);
  Value n = code.sub(shifted, rounder);
  Value r = code.multiplyAdd(n, code.real(type, -format.ln2High), x);
  r = code.multiplyAdd(n, code.real(type, -format.ln2Low), r);
  Value integerN =
      code.subInteger(code.bitcast(integerType, shifted), code.bitcast(integerType, rounder));
  return {integerN, r};
}

/// (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2.
static Value buildExpTail(ElementCode &code, Value r) {
  SmallVector<double> coefficients;
  double factorial = 1;
  for (int k = 1; k <= getFormat(r.getType()).expTerms; ++k) {
    factorial *= k;
    if (k >= 2)
      coefficients.push_back(1 / factorial);
  }
  std::reverse(coefficients.begin(), coefficients.end());
  return code.polynomial(r, coefficients);
}

Value mlir::moec::buildExp(ElementCode &code, Value x) {
  Type type = x.getType();
  const Format &format = getFormat(type);
  auto [n, r] = reduceExponent(code, code.clamp(x, format.lowestExp, format.highestExp));
  Value one = code.real(type, 1.0);
  Value result = code.multiplyAdd(code.mul(r, r), buildExpTail(code, r), r);
  result = code.add(result, one);
  // In two steps: 2^n itself overflows for the largest results and is subnormal for the smallest.
  Value half = code.shiftRightSigned(n, 1);
  result = code.mul(result, buildPowerOfTwo(code, type, half));
  return code.mul(result, buildPowerOfTwo(code, type, code.subInteger(n, half)));
}

Value mlir::moec::buildLog(ElementCode &code, Value x) {
  Type type = x.getType(), integerType = code.integerLike(type);
  const Format &format = getFormat(type);

  // Subnormal numbers are scaled up.
  Value isSubnormal = code.compare(FloatPredicate::OLT, x, code.real(type, format.smallestNormal));
  int scale = format.mantissaBits + 1;
  Value scaled = code.select(isSubnormal, code.mul(x, code.real(type, std::ldexp(1.0, scale))), x);

  // x = 2^e m with m in [sqrt(1/2), sqrt(2)): subtracting the bits of sqrt(1/2) moves the border of
  // the exponent there.
  Value bits = code.bitcast(integerType, scaled);
  int64_t border = format.mantissaBits == 23 ? 0x3f3504f3 : 0x3fe6a09e667f3bcd;
  Value offset = code.subInteger(bits, code.integer(integerType, border));
  Value exponent = code.shiftRightSigned(offset, format.mantissaBits);
  Value mantissa =
      code.bitcast(type, code.subInteger(bits, code.shiftLeft(exponent, format.mantissaBits)));
  Value e = code.toReal(type, exponent);
  e = code.select(isSubnormal, code.sub(e, code.real(type, scale)), e);

  // log(1 + f) = f - (f^2/2 - s (f^2/2 + R)), s = f / (2 + f), R = 2/3 s^2 + 2/5 s^4 + ...
  Value f = code.sub(mantissa, code.real(type, 1.0));
  Value s = code.div(f, code.add(f, code.real(type, 2.0)));
  Value s2 = code.mul(s, s);
  SmallVector<double> coefficients;
  for (int k = format.logTerms; k >= 1; --k)
    coefficients.push_back(2.0 / (2 * k + 1));
  Value remainder = code.mul(s2, code.polynomial(s2, coefficients));
  Value halfSquare = code.mul(code.mul(f, f), code.real(type, 0.5));
  Value inner = code.multiplyAdd(e, code.real(type, format.ln2Low),
                                 code.mul(s, code.add(halfSquare, remainder)));
  Value result = code.sub(f, code.sub(halfSquare, inner));
  result = code.multiplyAdd(e, code.real(type, format.ln2High), result);

  double infinity = std::numeric_limits<double>::infinity();
  Value zero = code.real(type, 0.0);
  // Infinity and NaN are their own logarithm.
  Value isFinite = code.compare(FloatPredicate::OLT, x, code.real(type, infinity));
  result = code.select(isFinite, result, x);
  result =
      code.select(code.compare(FloatPredicate::OEQ, x, zero), code.real(type, -infinity), result);
  return code.select(code.compare(FloatPredicate::OLT, x, zero),
                     code.real(type, std::numeric_limits<double>::quiet_NaN()), result);
}

Value mlir::moec::buildTanh(ElementCode &code, Value x) {
  // tanh |x| = t / (t + 2) with t = exp(2 |x|) - 1, and 1 from where that is 1 in this type.
  Type type = x.getType();
  bool isWide = getElementTypeOrSelf(type).isF64();
  Value doubled =
      code.clamp(code.mul(code.abs(x), code.real(type, 2.0)), 0.0, isWide ? 40.0 : 20.0);
  auto [n, r] = reduceExponent(code, doubled);
  Value expM1 = code.multiplyAdd(code.mul(r, r), buildExpTail(code, r), r);
  Value power = buildPowerOfTwo(code, type, n);
  Value t = code.multiplyAdd(expM1, power, code.sub(power, code.real(type, 1.0)));
  Value large = code.copySign(code.div(t, code.add(t, code.real(type, 2.0))), x);
  if (isWide)
    return large;
  // Near zero the quotient's three roundings would show: the Taylor series has one.
  Value square = code.mul(x, x);
  Value series =
      code.polynomial(square, {-1382.0 / 155925, 62.0 / 2835, -17.0 / 315, 2.0 / 15, -1.0 / 3});
  Value small = code.multiplyAdd(code.mul(series, square), x, x);
  Value isSmall = code.compare(FloatPredicate::OLT, code.abs(x), code.real(type, 0.25));
  return code.select(isSmall, small, large);
}

/// erf in f64, without a table of constants.
static Value buildWideErf(ElementCode &code, Value x) {
  Type type = x.getType();
  Value magnitude = code.clamp(code.abs(x), 0.0, 6.0);
  Value square = code.mul(magnitude, magnitude);
  Value decay = buildExp(code, code.negate(square));
  // Below 1.5: 2 / sqrt(pi) exp(-x^2) (x + 2/3 x^3 + 4/15 x^5 + ...), all terms of one sign.
  SmallVector<double> coefficients = {2 * std::numbers::inv_sqrtpi};
  for (int n = 1; n < 36; ++n)
    coefficients.push_back(coefficients.back() * 2 / (2 * n + 1));
  std::reverse(coefficients.begin(), coefficients.end());
  Value inner = code.mul(code.mul(decay, x), code.polynomial(square, coefficients));
  // Above: 1 - exp(-x^2) / sqrt(pi) / (x + 1/2 / (x + 2/2 / (x + 3/2 / ...))).
  Value fraction = magnitude;
  for (int n = 72; n >= 1; --n)
    fraction = code.add(magnitude, code.div(code.real(type, n / 2.0), fraction));
  Value rest = code.div(code.mul(decay, code.real(type, std::numbers::inv_sqrtpi)), fraction);
  Value outer = code.copySign(code.sub(code.real(type, 1.0), rest), x);
  Value isLarge = code.compare(FloatPredicate::OGE, magnitude, code.real(type, 1.5));
  return code.select(isLarge, outer, inner);
}

Value mlir::moec::buildErf(ElementCode &code, Value x) {
  Type type = x.getType();
  if (getElementTypeOrSelf(type).isF64())
    return buildWideErf(code, x);
  Value magnitude = code.abs(x);
  // Below 1: x + x P(x^2), above: 1 - exp(-Q(x)). P and Q are minimax fits.
  static constexpr double small[] = {
      7.853861461626366e-05, -0.0008010193705558777, 0.005188327748328447, -0.026853812858462334,
      0.1128358542919159,    -0.3761262595653534,    0.12837916612625122};
  static constexpr double large[] = {
      -0.00018637919856701046, 0.0029476583003997803, -0.02183806337416172, 0.10310675203800201,
      0.638144850730896,       1.1270891427993774,    0.0003415230312384665};
  Value inner = code.multiplyAdd(code.polynomial(code.mul(x, x), small), x, x);
  Value outer = code.polynomial(code.clamp(magnitude, 0.0, 4.0), large);
  outer = code.sub(code.real(type, 1.0), buildExp(code, code.negate(outer)));
  Value isSmall = code.compare(FloatPredicate::OLT, magnitude, code.real(type, 1.0));
  return code.select(isSmall, inner, code.copySign(outer, x));
}

/// sum (-1)^k x^2k / (2k + first)! for k from 0 on, the highest power first.
static SmallVector<double> alternatingSeries(int first, int terms) {
  SmallVector<double> coefficients;
  double factorial = 1;
  for (int n = 2; n < first + 2 * terms; ++n) {
    factorial *= n;
    if (n >= first && (n - first) % 2 == 0)
      coefficients.push_back(((n - first) % 4 == 0 ? 1 : -1) / factorial);
  }
  std::reverse(coefficients.begin(), coefficients.end());
  return coefficients;
}

Value mlir::moec::buildSine(ElementCode &code, Value x, bool cosine) {
  // x = n pi/2 + r. The parts of pi/2 have 24 bits: n times them is exact for n below 2^29.
  Type type = x.getType(), integerType = code.integerLike(type), f64 = code.f64();
  bool isWide = type == f64;
  Value wide = isWide ? x : code.extend(f64, x);
  Value rounder = code.real(f64, 0x1.8p52);
  Value shifted = code.add(code.mul(wide, code.real(f64, 2 / std::numbers::pi)), rounder);
  Value n = code.sub(shifted, rounder);
  Value r = wide;
  for (double part : {0x1.921fb4p+0, 0x1.4442dp-24, 0x1.846988p-48, 0x1.8cc51701b839ap-72})
    r = code.sub(r, code.mul(n, code.real(f64, part)));
  Value quadrant = code.bitcast(code.integerLike(f64), shifted);
  if (!isWide) {
    r = code.truncate(type, r);
    quadrant = arith::TruncIOp::create(code.builder, code.loc, integerType, quadrant);
  }

  // sin r = r - r^3 S(r^2), cos r = 1 - r^2/2 + r^4 C(r^2).
  Value r2 = code.mul(r, r);
  SmallVector<double> sineSeries = alternatingSeries(/*first=*/3, isWide ? 8 : 5);
  Value sine = code.mul(code.polynomial(r2, sineSeries), r2);
  sine = code.multiplyAdd(code.negate(sine), r, r);
  // The sum has lost the sign of a zero.
  sine = code.select(code.compare(FloatPredicate::OEQ, r, code.real(type, 0.0)), r, sine);
  SmallVector<double> cosineSeries = alternatingSeries(/*first=*/4, isWide ? 8 : 5);
  Value half = code.multiplyAdd(r2, code.real(type, -0.5), code.real(type, 1.0));
  Value cosineValue = code.multiplyAdd(code.polynomial(r2, cosineSeries), code.mul(r2, r2), half);

  if (cosine)
    quadrant = code.addInteger(quadrant, code.integer(integerType, 1));
  Value odd = code.bitAnd(quadrant, code.integer(integerType, 1));
  Value result = code.select(code.compare(IntegerPredicate::ne, odd, code.integer(integerType, 0)),
                             cosineValue, sine);
  Value sign =
      code.shiftLeft(code.bitAnd(quadrant, code.integer(integerType, 2)), isWide ? 62 : 30);
  return code.bitcast(type, code.bitXor(code.bitcast(integerType, result), sign));
}

/// Calls `build` on `x` in f64 and rounds to f32.
static Value buildWide(ElementCode &code, Value x, function_ref<Value(Value)> build) {
  return code.truncate(code.f32(), build(code.extend(code.f64(), x)));
}

Value mlir::moec::buildExp2(ElementCode &code, Value x) {
  return buildWide(code, x, [&](Value wide) {
    return buildExp(code, code.mul(wide, code.real(wide.getType(), std::numbers::ln2)));
  });
}

Value mlir::moec::buildExpM1(ElementCode &code, Value x) {
  return buildWide(code, x, [&](Value wide) {
    Value one = code.real(wide.getType(), 1.0);
    // Below 2^-24 the subtraction would leave too few bits: x + x^2/2 is exact there.
    Value isSmall =
        code.compare(FloatPredicate::OLT, code.abs(wide), code.real(wide.getType(), 0x1p-24));
    Value small = code.multiplyAdd(code.mul(wide, wide), code.real(wide.getType(), 0.5), wide);
    return code.select(isSmall, small, code.sub(buildExp(code, wide), one));
  });
}

Value mlir::moec::buildLog1P(ElementCode &code, Value x) {
  return buildWide(code, x, [&](Value wide) {
    Value isSmall =
        code.compare(FloatPredicate::OLT, code.abs(wide), code.real(wide.getType(), 0x1p-24));
    Value small = code.multiplyAdd(code.mul(wide, wide), code.real(wide.getType(), -0.5), wide);
    return code.select(isSmall, small,
                       buildLog(code, code.add(wide, code.real(wide.getType(), 1.0))));
  });
}

Value mlir::moec::buildLog2(ElementCode &code, Value x) {
  return buildWide(code, x, [&](Value wide) {
    return code.mul(buildLog(code, wide), code.real(wide.getType(), std::numbers::log2e));
  });
}

Value mlir::moec::buildLog10(ElementCode &code, Value x) {
  return buildWide(code, x, [&](Value wide) {
    return code.mul(buildLog(code, wide), code.real(wide.getType(), std::numbers::log10e));
  });
}

Value mlir::moec::buildPower(ElementCode &code, Value base, Value exponent) {
  Type f64 = code.f64(), i64 = code.integerLike(f64);
  Value b = code.extend(f64, base), e = code.extend(f64, exponent);
  Value zero = code.real(f64, 0.0), one = code.real(f64, 1.0);
  Value magnitude = buildExp(code, code.mul(e, buildLog(code, code.abs(b))));

  // A negative base takes integers only; an odd one makes the result negative. Numbers from 2^53 on
  // are even.
  Value isNegative =
      code.compare(IntegerPredicate::slt, code.bitcast(i64, b), code.integer(i64, 0));
  auto isInteger = [&](Value x) {
    return code.compare(FloatPredicate::OEQ,
                        Value(math::FloorOp::create(code.builder, code.loc, x)), x);
  };
  Value isOdd = code.bitXor(isInteger(code.mul(e, code.real(f64, 0.5))), isInteger(e));
  Value isOddInteger = code.bitAnd(isInteger(e), isOdd);
  Value result =
      code.select(code.bitAnd(isNegative, isOddInteger), code.negate(magnitude), magnitude);
  Value isInvalid = code.bitAnd(
      code.compare(FloatPredicate::OLT, b, zero),
      code.compare(FloatPredicate::ONE,
                   code.sub(e, Value(math::FloorOp::create(code.builder, code.loc, e))), zero));
  // An infinite base has no invalid exponents, and an infinite exponent counts as even.
  isInvalid = code.bitAnd(isInvalid,
                          code.compare(FloatPredicate::OGT, b,
                                       code.real(f64, -std::numeric_limits<double>::infinity())));
  result = code.select(isInvalid, code.real(f64, std::numeric_limits<double>::quiet_NaN()), result);
  // x^0 and 1^y are 1, for NaN, too; (-1)^(+-infinity) is 1.
  Value isOne = code.bitOr(code.compare(FloatPredicate::OEQ, e, zero),
                           code.compare(FloatPredicate::OEQ, b, one));
  Value isInfinite = code.compare(FloatPredicate::OEQ, code.abs(e),
                                  code.real(f64, std::numeric_limits<double>::infinity()));
  isOne = code.bitOr(
      isOne, code.bitAnd(isInfinite, code.compare(FloatPredicate::OEQ, b, code.real(f64, -1.0))));
  return code.truncate(code.f32(), code.select(isOne, one, result));
}

Value mlir::moec::buildRemainder(ElementCode &code, Value x, Value y) {
  Type type = x.getType();
  Value zero = code.real(type, 0.0), half = code.real(type, 0.5);
  Value infinity = code.real(type, std::numeric_limits<double>::infinity());
  Value dividend = code.abs(x), divisor = code.abs(y);
  Value isDefined = code.bitAnd(code.compare(FloatPredicate::OLT, dividend, infinity),
                                code.compare(FloatPredicate::OGT, divisor, zero));
  // A dividend below its divisor is its own remainder; such elements divide 0 by 1 meanwhile.
  Value isLarge = code.bitAnd(isDefined, code.compare(FloatPredicate::OGE, dividend, divisor));
  Value last = code.select(isLarge, divisor, code.real(type, 1.0));

  // Long division in base 2. Doubling and halving are exact, and so is taking away a number from
  // one that is at most twice as large.
  Value rest = code.select(isLarge, dividend, zero);
  auto fitsTwice = [&](Value step) {
    return code.compare(FloatPredicate::OLE, code.add(step, step), rest);
  };
  Value step = code.loopWhile(
                       last, [&](ValueRange v) { return code.any(fitsTwice(v[0])); },
                       [&](ValueRange v) -> SmallVector<Value> {
                         return {code.select(fitsTwice(v[0]), code.add(v[0], v[0]), v[0])};
                       })
                   .front();
  auto isStep = [&](Value step) { return code.compare(FloatPredicate::OGE, step, last); };
  rest = code.loopWhile(
                 {rest, step}, [&](ValueRange v) { return code.any(isStep(v[1])); },
                 [&](ValueRange v) -> SmallVector<Value> {
                   Value fits =
                       code.bitAnd(isStep(v[1]), code.compare(FloatPredicate::OGE, v[0], v[1]));
                   return {code.select(fits, code.sub(v[0], v[1]), v[0]), code.mul(v[1], half)};
                 })
             .front();
  Value result = code.copySign(code.select(isLarge, rest, dividend), x);
  return code.select(isDefined, result, code.real(type, std::numeric_limits<double>::quiet_NaN()));
}
