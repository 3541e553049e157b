//===- ElementCode.h - arithmetic on scalars and vectors alike --------------------------------===//
//
// Builds arith ops whose operands are all scalars or all vectors of one shape. Every operand of one
// call has the same shape; integer operands have the width of the float type they belong to.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_KERNELTOX86_ELEMENTCODE_H
#define MOEC_CONVERSION_KERNELTOX86_ELEMENTCODE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

namespace mlir::moec {

class ElementCode {
public:
  /// `shape` is the type whose shape all values have. `hasFMA`: whether the target multiplies and
  /// adds in one instruction.
  ElementCode(OpBuilder &builder, Location loc, Type shape, bool hasFMA)
      : builder(builder), loc(loc), shape(dyn_cast<VectorType>(shape)), hasFMA(hasFMA) {}

  OpBuilder &builder;
  Location loc;

  Type like(Type element) const { return shape ? VectorType(shape).clone(element) : element; }
  Type f32() const { return like(builder.getF32Type()); }
  Type f64() const { return like(builder.getF64Type()); }

  /// A constant of float type `type`.
  Value real(Type type, double value) {
    return constant(type, builder.getFloatAttr(getElementTypeOrSelf(type), value));
  }
  Value integer(Type type, int64_t value) {
    return constant(type, builder.getIntegerAttr(getElementTypeOrSelf(type), value));
  }
  /// The integer type as wide as float type `type`.
  Type integerLike(Type type) {
    return like(builder.getIntegerType(getElementTypeOrSelf(type).getIntOrFloatBitWidth()));
  }

  Value add(Value a, Value b) { return arith::AddFOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(builder, loc, a, b); }
  Value div(Value a, Value b) { return arith::DivFOp::create(builder, loc, a, b); }
  Value negate(Value a) { return arith::NegFOp::create(builder, loc, a); }
  Value abs(Value a) { return math::AbsFOp::create(builder, loc, a); }
  Value sqrt(Value a) { return math::SqrtOp::create(builder, loc, a); }
  Value copySign(Value magnitude, Value sign) {
    return math::CopySignOp::create(builder, loc, magnitude, sign);
  }
  /// a * b + c, in one rounding where the target can.
  Value multiplyAdd(Value a, Value b, Value c) {
    return hasFMA ? Value(math::FmaOp::create(builder, loc, a, b, c)) : add(mul(a, b), c);
  }
  /// Horner's scheme, the coefficient of the highest power first.
  Value polynomial(Value x, ArrayRef<double> coefficients) {
    Value result = real(x.getType(), coefficients.front());
    for (double coefficient : coefficients.drop_front())
      result = multiplyAdd(result, x, real(x.getType(), coefficient));
    return result;
  }

  Value compare(arith::CmpFPredicate predicate, Value a, Value b) {
    return arith::CmpFOp::create(builder, loc, predicate, a, b);
  }
  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(builder, loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
  /// At least `low` and at most `high`; NaN stays NaN. One instruction each.
  Value clamp(Value x, double low, double high) {
    Value lowest = real(x.getType(), low), highest = real(x.getType(), high);
    x = select(compare(arith::CmpFPredicate::OGT, lowest, x), lowest, x);
    return select(compare(arith::CmpFPredicate::OLT, highest, x), highest, x);
  }

  Value addInteger(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
  Value subInteger(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
  Value bitAnd(Value a, Value b) { return arith::AndIOp::create(builder, loc, a, b); }
  Value bitOr(Value a, Value b) { return arith::OrIOp::create(builder, loc, a, b); }
  Value bitXor(Value a, Value b) { return arith::XOrIOp::create(builder, loc, a, b); }
  Value shiftLeft(Value a, int64_t bits) {
    return arith::ShLIOp::create(builder, loc, a, integer(a.getType(), bits));
  }
  Value shiftRightSigned(Value a, int64_t bits) {
    return arith::ShRSIOp::create(builder, loc, a, integer(a.getType(), bits));
  }
  Value shiftRight(Value a, int64_t bits) {
    return arith::ShRUIOp::create(builder, loc, a, integer(a.getType(), bits));
  }
  Value bitcast(Type type, Value a) { return arith::BitcastOp::create(builder, loc, type, a); }
  Value extend(Type type, Value a) { return arith::ExtFOp::create(builder, loc, type, a); }
  Value truncate(Type type, Value a) { return arith::TruncFOp::create(builder, loc, type, a); }
  Value toReal(Type type, Value a) { return arith::SIToFPOp::create(builder, loc, type, a); }

  /// Whether a condition holds for any element.
  Value any(Value condition) {
    auto vector = dyn_cast<VectorType>(condition.getType());
    if (!vector)
      return condition;
    auto flat = VectorType::get({vector.getNumElements()}, vector.getElementType());
    return vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR,
                                       vector::ShapeCastOp::create(builder, loc, flat, condition));
  }
  /// while (condition(values)) values = body(values), beginning with `initial`.
  SmallVector<Value> loopWhile(ValueRange initial, function_ref<Value(ValueRange)> condition,
                               function_ref<SmallVector<Value>(ValueRange)> body) {
    return scf::WhileOp::create(
               builder, loc, initial.getTypes(), initial,
               [&](OpBuilder &, Location, ValueRange values) {
                 scf::ConditionOp::create(builder, loc, condition(values), values);
               },
               [&](OpBuilder &, Location, ValueRange values) {
                 scf::YieldOp::create(builder, loc, body(values));
               })
        .getResults();
  }

private:
  Value constant(Type type, TypedAttr value) {
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, value);
    return arith::ConstantOp::create(builder, loc, type, value);
  }

  VectorType shape;
  bool hasFMA;
};

} // namespace mlir::moec

#endif // MOEC_CONVERSION_KERNELTOX86_ELEMENTCODE_H
