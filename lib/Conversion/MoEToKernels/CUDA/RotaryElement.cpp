#include "RotaryElement.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::moec;

RotaryElement::RotaryElement(BlockCode &code, moe::RotaryAttr attribute) : attribute(attribute) {
  if (attribute)
    frequencies = code.constantTable(attribute.getFrequencies().asArrayRef());
}

Value RotaryElement::build(BlockCode &code, Value position, Value i,
                           function_ref<Value(Value)> load) const {
  if (!attribute)
    return load(i);
  Location loc = code.getLoc();
  int64_t pairs = attribute.getFrequencies().size();
  // Elements before `offset` become large numbers.
  Value place = code.sub(i, code.index(attribute.getOffset()));
  auto rotated = [&]() -> SmallVector<Value> {
    // Which pair, and whether the element is its second.
    Value pair, isSecond, partner;
    if (attribute.getInterleaved()) {
      pair = code.divide(place, 2);
      isSecond = code.compare(arith::CmpIPredicate::ne, code.remainder(place, 2), code.index(0));
      partner = code.select(isSecond, code.sub(i, code.index(1)), code.add(i, 1));
    } else {
      pair = code.remainder(place, pairs);
      isSecond = code.compare(arith::CmpIPredicate::uge, place, code.index(pairs));
      partner = code.select(isSecond, code.sub(i, code.index(pairs)), code.add(i, pairs));
    }
    Value real = arith::SIToFPOp::create(code, loc, code.getF32Type(), position);
    Value angle = code.mul(real, code.loadFloat(frequencies, pair));
    Value magnitude = code.float32(attribute.getMagnitude());
    Value cosine = code.mul(math::CosOp::create(code, loc, angle), magnitude);
    Value sine = code.mul(math::SinOp::create(code, loc, angle), magnitude);
    // (a, b) becomes (a c - b s, b c + a s).
    Value straight = code.mul(load(i), cosine), across = code.mul(load(partner), sine);
    return {code.select(isSecond, code.add(straight, across), code.sub(straight, across))};
  };
  return code.choose(code.isWithin(place, code.index(2 * pairs)), {code.getF32Type()}, rotated,
                     [&]() -> SmallVector<Value> { return {load(i)}; })[0];
}
