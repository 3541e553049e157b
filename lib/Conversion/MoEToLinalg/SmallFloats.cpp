#include "SmallFloats.h"

using namespace mlir;
using namespace mlir::moec;

static Value integer(LinalgCode &code, int64_t value) {
  OpBuilder &b = code.rewriter;
  return arith::ConstantOp::create(b, code.loc, b.getI32IntegerAttr(value));
}

Value mlir::moec::decodeE2M1(LinalgCode &code, Value bits) {
  OpBuilder &b = code.rewriter;
  Location loc = code.loc;
  // Codes 2..7 are normal: exponent and mantissa move to the places of f32. Code 1 is a half, code
  // 0 is zero.
  Value magnitude = arith::AndIOp::create(b, loc, bits, integer(code, 7));
  Value field =
      arith::AddIOp::create(b, loc, arith::ShLIOp::create(b, loc, magnitude, integer(code, 22)),
                            integer(code, 126 << 23));
  Value isSmall =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, magnitude, integer(code, 2));
  Value small = arith::MulIOp::create(b, loc, magnitude, integer(code, 126 << 23));
  field = arith::SelectOp::create(b, loc, isSmall, small, field);
  Value sign = arith::ShLIOp::create(b, loc, arith::AndIOp::create(b, loc, bits, integer(code, 8)),
                                     integer(code, 28));
  return arith::BitcastOp::create(b, loc, code.f32(), arith::OrIOp::create(b, loc, field, sign));
}

Value mlir::moec::decodeE8M0(LinalgCode &code, Value byte) {
  OpBuilder &b = code.rewriter;
  Location loc = code.loc;
  Value wide = arith::ExtUIOp::create(b, loc, b.getI32Type(), byte);
  Value field = arith::ShLIOp::create(b, loc, wide, integer(code, 23));
  // 2^-127 is subnormal, and all ones would be infinity.
  Value isZero = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, wide, integer(code, 0));
  field = arith::SelectOp::create(b, loc, isZero, integer(code, 1 << 22), field);
  Value isNaN = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, wide, integer(code, 255));
  field = arith::SelectOp::create(b, loc, isNaN, integer(code, 0x7fc00000), field);
  return arith::BitcastOp::create(b, loc, code.f32(), field);
}

Value mlir::moec::decodeFloat8(LinalgCode &code, Value byte, bool isE4M3) {
  OpBuilder &b = code.rewriter;
  Location loc = code.loc;
  int64_t mantissaBits = isE4M3 ? 3 : 2, bias = isE4M3 ? 7 : 15;
  int64_t mantissas = 1 << mantissaBits;
  Value wide = arith::ExtUIOp::create(b, loc, b.getI32Type(), byte);
  Value magnitude = arith::AndIOp::create(b, loc, wide, integer(code, 127));
  // Normal numbers: exponent and mantissa move to the places of f32.
  Value moved = arith::ShLIOp::create(b, loc, magnitude, integer(code, 23 - mantissaBits));
  Value field = arith::AddIOp::create(b, loc, moved, integer(code, (127 - bias) << 23));
  // Subnormal ones are whole multiples of the smallest.
  Value isSmall =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, magnitude, integer(code, mantissas));
  Value multiple = arith::SIToFPOp::create(b, loc, code.f32(), magnitude);
  Value small =
      arith::MulFOp::create(b, loc, multiple, code.real(1.0 / double(mantissas << (bias - 1))));
  small = arith::BitcastOp::create(b, loc, b.getI32Type(), small);
  field = arith::SelectOp::create(b, loc, isSmall, small, field);
  if (!isE4M3) {
    Value isInfinite =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, magnitude, integer(code, 31 << 2));
    field = arith::SelectOp::create(b, loc, isInfinite, integer(code, 0x7f800000), field);
  }
  int64_t lastNumber = isE4M3 ? 126 : 31 << 2;
  Value isNaN = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ugt, magnitude,
                                      integer(code, lastNumber));
  field = arith::SelectOp::create(b, loc, isNaN, integer(code, 0x7fc00000), field);
  Value sign = arith::ShLIOp::create(
      b, loc, arith::AndIOp::create(b, loc, wide, integer(code, 128)), integer(code, 24));
  return arith::BitcastOp::create(b, loc, code.f32(), arith::OrIOp::create(b, loc, field, sign));
}
