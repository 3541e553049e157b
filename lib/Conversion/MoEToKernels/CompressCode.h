//===- CompressCode.h - windows of tokens become entries, channel by channel ------------------===//
//
// A channel's softmax grows token by token, as maximum, sum of weights and weighted sum, which are
// in registers while a sequence's tokens pass and in its slot between steps. So an entry is made in
// one order wherever a prompt was cut.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_COMPRESSCODE_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_COMPRESSCODE_H

#include "SequencePart.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

class CompressCode {
public:
  CompressCode(CodeBuilder &code, moe::CompressOp op, ValueRange operands, Value result)
      : code(code), ratio(op.getRatio()), channels(op.getResult().getType().getDimSize(1)),
        means(op.hasOverlap() ? 2 : 1), keys(operands[0]), gates(operands[1]), bias(operands[2]),
        state(operands[3]), positions(operands[4]), result(result) {}

  static SequenceOperands getSequences(ValueRange operands) {
    return {operands[3], operands[4], operands[5], operands[6]};
  }

  /// Channels [channel, channel + width) of a sequence's tokens as vectors; one of them as numbers
  /// when `width` is 0.
  void build(const SequencePart &part, Value channel, int64_t width);

private:
  /// Maximum, sum of weights and weighted sum of each mean; zeros before the first token.
  static constexpr unsigned sizeOfMean = 3;
  SmallVector<Value> loadState(const SequencePart &part, Value channel, int64_t width);
  SmallVector<Value> takeToken(Value token, Value channel, int64_t width, ValueRange before);
  Value load(Value memref, ValueRange place, int64_t width) {
    return width ? code.loadFloats(memref, place, width) : code.loadFloat(memref, place);
  }
  void store(Value value, Value memref, ValueRange place, int64_t width) {
    width ? code.storeFloats(value, memref, place) : code.storeFloat(value, memref, place);
  }
  Value constant(double value, int64_t width) {
    return width ? code.floatSplat(value, width) : code.float32(value);
  }

  CodeBuilder &code;
  int64_t ratio, channels;
  int64_t means; ///< the window's and, with overlap, what the next one begins with
  Value keys, gates, bias, state, positions, result;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_COMPRESSCODE_H
