#include "SequencePart.h"

using namespace mlir;
using namespace mlir::moec;

void mlir::moec::withSequence(CodeBuilder &code, const SequenceOperands &operands, Value sequence,
                              Value tokens, function_ref<void(const SequencePart &)> body) {
  SequencePart part;
  part.first = code.loadIndex(operands.sequenceOffsets, sequence);
  part.end = code.loadIndex(operands.sequenceOffsets, code.add(sequence, 1));
  part.slot = code.loadIndex(operands.stateSlots, sequence);
  Value hasTokens = code.isWithin(part.first, part.end);
  Value liesInStep = code.isWithin(part.end, code.add(tokens, 1));
  Value liesInPool = code.isWithin(part.slot, code.dim(operands.state, 0));
  code.when(code.both(code.both(hasTokens, liesInStep), liesInPool), [&] {
    part.begins = code.compare(arith::CmpIPredicate::eq,
                               code.loadInt(operands.positions, part.first), code.int32(0));
    body(part);
  });
}
