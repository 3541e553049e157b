#include "OrderedScores.h"

#include <limits>

using namespace mlir;
using namespace mlir::moec;

Value mlir::moec::orderOfScores(CodeBuilder &code, Value scores) {
  Location loc = code.getLoc();
  auto vector = dyn_cast<VectorType>(scores.getType());
  auto real = [&](double x) {
    return vector ? code.floatSplat(x, vector.getNumElements()) : code.float32(x);
  };
  auto integer = [&](int64_t x) {
    return vector ? code.intSplat(x, vector.getNumElements()) : code.int32(x);
  };
  Value isNumber = code.compare(arith::CmpFPredicate::ORD, scores, scores);
  Value number = code.select(isNumber, scores, real(-std::numeric_limits<double>::infinity()));
  Value isZero = code.compare(arith::CmpFPredicate::OEQ, number, real(0));
  number = code.select(isZero, real(0), number);
  Value bits = arith::BitcastOp::create(code, loc, integer(0).getType(), number);
  // Of negative numbers the magnitude's bits count downwards.
  Value isNegative = code.compare(arith::CmpIPredicate::slt, bits, integer(0));
  Value turned = arith::XOrIOp::create(code, loc, bits, integer(INT32_MAX));
  return code.select(isNegative, turned, bits);
}

Value mlir::moec::findThreshold(CodeBuilder &code, int64_t rank,
                                function_ref<Value(Value)> countAtLeast) {
  // The bits of the result from the highest on, with the sign's turned around.
  Location loc = code.getLoc();
  Value sign = code.int32(INT32_MIN);
  Value found = code.loop(code.index(0), code.index(32), 1, {code.int32(0)},
                          [&](Value i, ValueRange carried) -> SmallVector<Value> {
                            Value bit = arith::ShRUIOp::create(code, loc, sign, code.toInt32(i));
                            Value tried = arith::OrIOp::create(code, loc, carried[0], bit);
                            Value count =
                                countAtLeast(arith::XOrIOp::create(code, loc, tried, sign));
                            Value isReached =
                                code.compare(arith::CmpIPredicate::sge, count, code.int32(rank));
                            return {code.select(isReached, tried, carried[0])};
                          })[0];
  return arith::XOrIOp::create(code, loc, found, sign);
}
