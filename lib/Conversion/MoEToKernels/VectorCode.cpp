#include "VectorCode.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::moec;

/// `type` with another element type: vectors keep their shape.
static Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

/// A constant of the integer type (scalar or vector) of `like`.
static Value constantLike(CodeBuilder &code, Value like, int64_t value) {
  Type element = getElementTypeOrSelf(like.getType());
  TypedAttr attribute = code.getIntegerAttr(
      element, APInt(element.getIntOrFloatBitWidth(), static_cast<uint64_t>(value), false, true));
  if (auto vector = dyn_cast<VectorType>(like.getType()))
    attribute = DenseElementsAttr::get(vector, attribute);
  return arith::ConstantOp::create(code, code.getLoc(), attribute);
}

Value mlir::moec::bitcastTo(CodeBuilder &code, Value value, Type element) {
  auto vector = dyn_cast<VectorType>(value.getType());
  if (!vector)
    return arith::BitcastOp::create(code, code.getLoc(), element, value);
  int64_t bits = vector.getNumElements() * vector.getElementTypeBitWidth();
  auto type = VectorType::get({bits / element.getIntOrFloatBitWidth()}, element);
  return vector::BitCastOp::create(code, code.getLoc(), type, value);
}

Value mlir::moec::shiftLeft(CodeBuilder &code, Value vector, int64_t bits) {
  if (bits == 0)
    return vector;
  return arith::ShLIOp::create(code, code.getLoc(), vector, constantLike(code, vector, bits));
}

Value mlir::moec::shiftRight(CodeBuilder &code, Value vector, int64_t bits) {
  if (bits == 0)
    return vector;
  return arith::ShRUIOp::create(code, code.getLoc(), vector, constantLike(code, vector, bits));
}

Value mlir::moec::bitAnd(CodeBuilder &code, Value vector, uint32_t mask) {
  return arith::AndIOp::create(code, code.getLoc(), vector, constantLike(code, vector, mask));
}

/// The 16 bits of the bf16 nearest to an f32, in an i32; NaN stays NaN.
static Value roundToBF16Bits(CodeBuilder &code, Value value) {
  Value bits = bitcastTo(code, value, code.getI32Type());
  Value lowest = bitAnd(code, shiftRight(code, bits, 16), 1);
  Value rounded = code.add(code.add(bits, constantLike(code, bits, 0x7fff)), lowest);
  Value quiet = arith::OrIOp::create(code, code.getLoc(), bits, constantLike(code, bits, 0x400000));
  Value isNaN = code.compare(arith::CmpFPredicate::UNO, value, value);
  return shiftRight(code, code.select(isNaN, quiet, rounded), 16);
}

static Value fromBF16Bits(CodeBuilder &code, Value bits32) {
  return bitcastTo(code, shiftLeft(code, bits32, 16), code.getF32Type());
}

/// f32 to `element`.
static Value narrow(CodeBuilder &code, Value value, Type element) {
  if (element.isF32())
    return value;
  if (!element.isBF16())
    return arith::TruncFOp::create(code, code.getLoc(), withElement(value.getType(), element),
                                   value);
  Value bits = roundToBF16Bits(code, value);
  Value half = arith::TruncIOp::create(code, code.getLoc(),
                                       withElement(value.getType(), code.getI16Type()), bits);
  return bitcastTo(code, half, element);
}

static Value widen(CodeBuilder &code, Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  if (element.isF32())
    return value;
  Type wide = withElement(value.getType(), code.getF32Type());
  if (!element.isBF16())
    return arith::ExtFOp::create(code, code.getLoc(), wide, value);
  Value half = bitcastTo(code, value, code.getI16Type());
  Value bits = arith::ExtUIOp::create(code, code.getLoc(),
                                      withElement(value.getType(), code.getI32Type()), half);
  return fromBF16Bits(code, bits);
}

Value mlir::moec::roundThrough(CodeBuilder &code, Value value, Type element) {
  if (element.isF32())
    return value;
  if (element.isBF16())
    return fromBF16Bits(code, roundToBF16Bits(code, value));
  return widen(code, narrow(code, value, element));
}

Value mlir::moec::loadWidened(CodeBuilder &code, Value memref, ValueRange indices, int64_t lanes) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  return widen(code, vector::LoadOp::create(code, code.getLoc(), VectorType::get({lanes}, element),
                                            memref, indices));
}

Value mlir::moec::loadWidened(CodeBuilder &code, Value memref, ValueRange indices) {
  return widen(code, memref::LoadOp::create(code, code.getLoc(), memref, indices));
}

void mlir::moec::storeRounded(CodeBuilder &code, Value value, Value memref, ValueRange indices) {
  Value stored = narrow(code, value, cast<MemRefType>(memref.getType()).getElementType());
  if (isa<VectorType>(stored.getType()))
    vector::StoreOp::create(code, code.getLoc(), stored, memref, indices);
  else
    memref::StoreOp::create(code, code.getLoc(), stored, memref, indices);
}

Value mlir::moec::flatten(CodeBuilder &code, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (type.getRank() == 1)
    return memref;
  // A reinterpreting cast, because indices through a collapsed shape are taken apart again.
  assert(type.hasStaticShape() && type.getLayout().isIdentity() && "expected a plain buffer");
  auto flat = MemRefType::get({type.getNumElements()}, type.getElementType());
  return memref::ReinterpretCastOp::create(code, code.getLoc(), flat, memref, /*offset=*/0,
                                           ArrayRef<int64_t>{type.getNumElements()},
                                           ArrayRef<int64_t>{1});
}

Value mlir::moec::multiplyAdd(CodeBuilder &code, bool fused, Value a, Value b, Value c) {
  if (fused)
    return code.fma(a, b, c);
  return code.add(code.mul(a, b), c);
}
