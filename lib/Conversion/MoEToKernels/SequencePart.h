//===- SequencePart.h - the tokens of one sequence in a step, and its slot --------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_SEQUENCEPART_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_SEQUENCEPART_H

#include "CodeBuilder.h"

namespace mlir::moec {

/// What a kernel over a state knows of a sequence that has tokens in the step.
struct SequencePart {
  Value first, end; ///< its tokens
  Value slot;
  Value begins; ///< i1: at position 0, so that what lies in the slot does not count
};

/// The memrefs of the operands that say which token belongs to which sequence, and the pool.
struct SequenceOperands {
  Value state, positions, sequenceOffsets, stateSlots;
};

/// Builds `body` for `sequence`, under conditions: it has tokens, they lie among the step's
/// `tokens`, and its slot lies in the pool. A wrong table must not write anywhere else.
void withSequence(CodeBuilder &code, const SequenceOperands &operands, Value sequence, Value tokens,
                  function_ref<void(const SequencePart &)> body);

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_SEQUENCEPART_H
