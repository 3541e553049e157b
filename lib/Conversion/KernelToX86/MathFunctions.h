//===- MathFunctions.h - elementary functions as arithmetic -----------------------------------===//
//
// Code that vectorises and calls nothing: within one or two units in the last place of f32, four of
// f64. Infinities, NaN, zeros and subnormal numbers are treated as the C library treats them.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_KERNELTOX86_MATHFUNCTIONS_H
#define MOEC_CONVERSION_KERNELTOX86_MATHFUNCTIONS_H

#include "ElementCode.h"

namespace mlir::moec {

// In f32 or f64, whatever the operand's type is.
Value buildExp(ElementCode &code, Value x);
Value buildLog(ElementCode &code, Value x);
Value buildTanh(ElementCode &code, Value x);
Value buildErf(ElementCode &code, Value x);

/// In f32 or f64, the angle reduced in f64: accurate for every angle up to 2^29. `cosine`: cos
/// instead of sin.
Value buildSine(ElementCode &code, Value x, bool cosine);

/// The remainder of x / y rounded towards zero, like C's fmod: exact, in f32 or f64.
Value buildRemainder(ElementCode &code, Value x, Value y);

// In f32, by way of f64.
Value buildPower(ElementCode &code, Value base, Value exponent);
Value buildExp2(ElementCode &code, Value x);
Value buildExpM1(ElementCode &code, Value x);
Value buildLog1P(ElementCode &code, Value x);
Value buildLog2(ElementCode &code, Value x);
Value buildLog10(ElementCode &code, Value x);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_KERNELTOX86_MATHFUNCTIONS_H
