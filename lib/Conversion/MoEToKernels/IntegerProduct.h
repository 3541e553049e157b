//===- IntegerProduct.h - MXFP4 panels times a few bf16 tokens, in integers (AVX2) ------------===//
//
// On AVX2 turning a code into an f32 number takes more instructions than multiplying with it, too
// many to keep up with the memory when there are few tokens. Twice an E2M1 number is a small
// integer, and a byte shuffle looks up 32 of them at once. So the activations of each block of 32
// columns become integers of about 14 bits and a common step: the error, a 22,000th of the block's
// largest number, is far below that of rounding to bf16. They are split into two signed bytes, as
// the instruction for byte products asks, and the integer sums are exact.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_INTEGERPRODUCT_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_INTEGERPRODUCT_H

#include "PanelProduct.h"

namespace mlir::moec {

class IntegerProduct {
public:
  explicit IntegerProduct(const WeightPanels &weight) : weight(weight) {}

  /// Whether this is the way to multiply few tokens: sums of f32 activations must be exact to f32
  /// rounding, and bits must not depend on the number of tokens where the target says so.
  static bool isWanted(Type weight, Type input, const TargetDescription &target);

  /// Takes its buffers from the workgroup's scratch memory.
  void allocate(ScratchAllocator &allocator, MLIRContext *context);

  /// Turns the packed rows of at most `fewTokens` tokens into integers.
  void quantize(CodeBuilder &code, const TokenBlock &block) const;

  /// As PanelProduct::build, for rows that have been quantised.
  void build(CodeBuilder &code, const TokenBlock &block, Value firstPanel, Value firstSum,
             Value count) const;

private:
  void quantizeBlock(CodeBuilder &code, Value rows, Value from, Value to) const;
  /// The sums of a panel's two halves of 8 rows over one block, for the token whose bytes start at
  /// `at`.
  std::pair<Value, Value> sumBlock(CodeBuilder &code, Value blockBase, Value at) const;
  Value loadBytes(CodeBuilder &code, Value at, int64_t offset) const;

  const WeightPanels &weight;
  /// i8 [blocks][tokens][2][32]: the high and the low bytes, in the order of the codes; f32 and i32
  /// [blocks][tokens]: half the step, and what the offset of the looked-up weights adds to a sum.
  Value planes, steps, offsets;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_INTEGERPRODUCT_H
