//===- CodeBuilder.h - short names for the ops of hand-shaped kernels -------------------------===//
//
// The strategies for attention, routing and their neighbours write loops over vectors. This builder
// keeps them readable: one short method for each op that they need, loops and conditions take their
// bodies as functions, and loads and stores convert between the element type in memory and f32.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CODEBUILDER_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CODEBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::moec {

class CodeBuilder : public ImplicitLocOpBuilder {
public:
  CodeBuilder(Location loc, OpBuilder &builder) : ImplicitLocOpBuilder(loc, builder) {}

  // Types.
  VectorType floatVector(int64_t lanes) { return VectorType::get({lanes}, getF32Type()); }
  VectorType intVector(int64_t lanes) { return VectorType::get({lanes}, getI32Type()); }

  // Constants.
  Value index(int64_t value);
  Value int32(int64_t value);
  Value float32(double value);
  Value boolean(bool value);
  Value floatSplat(double value, int64_t lanes);
  Value intSplat(int64_t value, int64_t lanes);
  /// 0, 1, 2, ... as i32.
  Value iota(int64_t lanes);
  /// `scalar` in every lane.
  Value broadcast(Value scalar, int64_t lanes);

  // Arithmetic on index, integer and float values; both operands have one type.
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  /// Quotient and remainder of values that are not negative.
  Value divide(Value a, Value b);
  Value remainder(Value a, Value b);
  Value minimum(Value a, Value b);
  /// The larger one; of floats `a > b ? a : b`, which is one instruction.
  Value maximum(Value a, Value b);
  Value fma(Value a, Value b, Value c);
  Value exp(Value x);

  // Index arithmetic with constants.
  Value add(Value a, int64_t b) { return b == 0 ? a : add(a, index(b)); }
  Value mul(Value a, int64_t b) { return b == 1 ? a : mul(a, index(b)); }
  Value divide(Value a, int64_t b) { return b == 1 ? a : divide(a, index(b)); }
  Value remainder(Value a, int64_t b) { return remainder(a, index(b)); }

  // Comparisons (signed for integers).
  Value compare(arith::CmpIPredicate predicate, Value a, Value b);
  Value compare(arith::CmpFPredicate predicate, Value a, Value b);
  Value select(Value condition, Value a, Value b);
  Value both(Value a, Value b);
  /// 0 <= value < limit, on index values.
  Value isWithin(Value value, Value limit);

  /// From i32 to index and back.
  Value toIndex(Value value);
  Value toInt32(Value value);

  // Memory. Floats are f32 in registers, whatever they are in memory.
  Value dim(Value memref, int64_t dimension);
  Value loadFloat(Value memref, ValueRange indices);
  Value loadFloats(Value memref, ValueRange indices, int64_t lanes);
  void storeFloat(Value value, Value memref, ValueRange indices);
  void storeFloats(Value value, Value memref, ValueRange indices);
  Value loadInt(Value memref, ValueRange indices);
  Value loadInts(Value memref, ValueRange indices, int64_t lanes);
  void storeInt(Value value, Value memref, ValueRange indices);
  void storeInts(Value value, Value memref, ValueRange indices);
  /// An i32 element as an index.
  Value loadIndex(Value memref, ValueRange indices) { return toIndex(loadInt(memref, indices)); }
  /// Asks for a line in the second cache.
  void prefetch(Value memref, ValueRange indices);

  // Lanes.
  Value lane(Value vector, int64_t i);
  Value fromLanes(ValueRange scalars);
  /// The sum of the lanes in a fixed order, the largest and the smallest lane.
  Value sumLanes(Value vector);
  Value maximumLane(Value vector);
  Value minimumLane(Value vector);

  // Control flow. Bodies build at this builder's insertion point and return what the loop or branch
  // yields. Loops count in index or i32, as `from` and `to` are.
  using LoopBody = function_ref<SmallVector<Value>(Value iv, ValueRange carried)>;
  SmallVector<Value> loop(Value from, Value to, int64_t step, ValueRange initial, LoopBody body);
  void loop(Value from, Value to, int64_t step, function_ref<void(Value iv)> body);
  void loop(int64_t from, int64_t to, int64_t step, function_ref<void(Value iv)> body) {
    loop(index(from), index(to), step, body);
  }
  SmallVector<Value> choose(Value condition, TypeRange types,
                            function_ref<SmallVector<Value>()> then,
                            function_ref<SmallVector<Value>()> otherwise);
  void choose(Value condition, function_ref<void()> then, function_ref<void()> otherwise);
  void when(Value condition, function_ref<void()> then);
  /// Loops over [0, count) with `unrolled` iterations a turn, where they divide the count.
  SmallVector<Value> unrolledLoop(int64_t count, int64_t unrolled, ValueRange initial,
                                  LoopBody body);
  /// Loops over [from, to) in steps of `lanes` and then over the rest in one step of its own; the
  /// body gets the number of lanes of its step. `to - from` is the constant `count`.
  void panels(int64_t count, int64_t lanes, function_ref<void(Value offset, int64_t lanes)> body);

private:
  /// A horizontal reduction as a tree of halves when the lanes are a power of two.
  Value reduceLanes(Value vector, function_ref<Value(Value, Value)> combine);
};

/// Hands out pieces of a workgroup's scratch memory, each aligned to 64 bytes. Without a memory it
/// only counts.
class ScratchAllocator {
public:
  ScratchAllocator() = default;
  ScratchAllocator(CodeBuilder &code, Value scratch) : code(&code), scratch(scratch) {}

  /// A buffer of a static shape; null while only counting.
  Value allocate(ArrayRef<int64_t> shape, Type element);
  int64_t getBytes() const { return bytes; }

private:
  CodeBuilder *code = nullptr;
  Value scratch;
  int64_t bytes = 0;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CODEBUILDER_H
