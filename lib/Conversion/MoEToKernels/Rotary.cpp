#include "Rotary.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::moec;

Rotary::Rotary(moe::RotaryAttr attribute, int64_t lanes, ScratchAllocator &allocator)
    : attribute(attribute), lanes(lanes) {
  if (!attribute)
    return;
  pairs = attribute.getFrequencies().size();
  Type f32 = Float32Type::get(attribute.getContext());
  // Whole vectors, so that sines and cosines need no tail.
  int64_t padded = llvm::alignTo(pairs, lanes);
  frequencies = allocator.allocate({padded}, f32);
  cosines = allocator.allocate({padded}, f32);
  sines = allocator.allocate({padded}, f32);
}

void Rotary::layDownFrequencies(CodeBuilder &code) const {
  if (!attribute)
    return;
  ArrayRef<float> values = attribute.getFrequencies().asArrayRef();
  for (int64_t i = 0; i < pairs; i += lanes) {
    SmallVector<float> piece(lanes, 0.0f);
    llvm::copy(values.slice(i, std::min(lanes, pairs - i)), piece.begin());
    Value constant = arith::ConstantOp::create(
        code, code.getLoc(),
        DenseElementsAttr::get(code.floatVector(lanes), ArrayRef<float>(piece)));
    code.storeFloats(constant, frequencies, code.index(i));
  }
}

void Rotary::setPosition(CodeBuilder &code, Value position) const {
  if (!attribute)
    return;
  Value real = arith::SIToFPOp::create(code, code.getLoc(), code.getF32Type(), position);
  Value positions = code.broadcast(real, lanes);
  Value magnitude = code.floatSplat(attribute.getMagnitude(), lanes);
  code.loop(0, pairs, lanes, [&](Value i) {
    Value angle = code.mul(positions, code.loadFloats(frequencies, i, lanes));
    Value cosine = math::CosOp::create(code, code.getLoc(), angle);
    Value sine = math::SinOp::create(code, code.getLoc(), angle);
    code.storeFloats(code.mul(cosine, magnitude), cosines, i);
    code.storeFloats(code.mul(sine, magnitude), sines, i);
  });
}

/// (a, b) times (c, s) as complex numbers.
static std::pair<Value, Value> turn(CodeBuilder &code, Value a, Value b, Value c, Value s) {
  Value first = code.sub(code.mul(a, c), code.mul(b, s));
  Value second = code.add(code.mul(b, c), code.mul(a, s));
  return {first, second};
}

void Rotary::rotateHalves(CodeBuilder &code, Value rows, Value row) const {
  int64_t offset = attribute.getOffset();
  code.panels(pairs, lanes, [&](Value i, int64_t width) {
    Value firstColumn = code.add(i, offset), secondColumn = code.add(i, offset + pairs);
    auto [a, b] = turn(code, code.loadFloats(rows, {row, firstColumn}, width),
                       code.loadFloats(rows, {row, secondColumn}, width),
                       code.loadFloats(cosines, i, width), code.loadFloats(sines, i, width));
    code.storeFloats(a, rows, {row, firstColumn});
    code.storeFloats(b, rows, {row, secondColumn});
  });
}

void Rotary::rotateNeighbours(CodeBuilder &code, Value rows, Value row) const {
  code.panels(pairs, lanes, [&](Value i, int64_t width) {
    SmallVector<int64_t> even, odd, interleave;
    for (int64_t j = 0; j < width; ++j) {
      even.push_back(2 * j);
      odd.push_back(2 * j + 1);
      interleave.append({j, width + j});
    }
    Location loc = code.getLoc();
    Value column = code.add(code.mul(i, 2), attribute.getOffset());
    Value mixed = code.loadFloats(rows, {row, column}, 2 * width);
    auto [a, b] = turn(code, vector::ShuffleOp::create(code, loc, mixed, mixed, even),
                       vector::ShuffleOp::create(code, loc, mixed, mixed, odd),
                       code.loadFloats(cosines, i, width), code.loadFloats(sines, i, width));
    code.storeFloats(vector::ShuffleOp::create(code, loc, a, b, interleave), rows, {row, column});
  });
}

void Rotary::rotate(CodeBuilder &code, Value rows, Value row) const {
  if (!attribute)
    return;
  if (attribute.getInterleaved())
    rotateNeighbours(code, rows, row);
  else
    rotateHalves(code, rows, row);
}
