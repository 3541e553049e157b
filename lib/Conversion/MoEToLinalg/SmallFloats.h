//===- SmallFloats.h - floats of a byte and less, decoded by integer operations ---------------===//
//
// Exact, subnormal numbers, signed zeros and NaN included, whatever a target does with subnormal
// numbers of f32.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_MOETOLINALG_SMALLFLOATS_H
#define MOEC_CONVERSION_MOETOLINALG_SMALLFLOATS_H

#include "LinalgCode.h"

namespace mlir::moec {

/// The value, in f32, of an E2M1 code in the low four bits of an i32.
Value decodeE2M1(LinalgCode &code, Value bits);
/// 2^(byte - 127), NaN for 255.
Value decodeE8M0(LinalgCode &code, Value byte);
/// The value, in f32, of a byte of E4M3 (without infinities) or else E5M2.
Value decodeFloat8(LinalgCode &code, Value byte, bool isE4M3);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_MOETOLINALG_SMALLFLOATS_H
