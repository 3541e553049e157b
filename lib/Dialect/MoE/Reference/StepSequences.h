// Which tokens of a step belong to which sequence, and the sequences' slots.
#ifndef MOEC_LIB_DIALECT_MOE_REFERENCE_STEPSEQUENCES_H
#define MOEC_LIB_DIALECT_MOE_REFERENCE_STEPSEQUENCES_H

#include "Models.h"

namespace mlir::moec::moe {

/// One sequence's part of a step, in a state.
struct StepSequence {
  int64_t firstToken, endToken;
  int64_t slot;
  bool begins; ///< in this step: what lies in the slot is somebody else's
};

/// The sequences that have tokens in the step. Checks the operands' sizes, that offsets ascend from
/// 0 to the number of tokens, that positions of a sequence follow one another, and that slots lie
/// in the state and are different. Emits a diagnostic.
FailureOr<std::vector<StepSequence>> readStepSequences(Operation *op, ReferenceFrame &frame,
                                                       int64_t tokens, const ReferenceState &state,
                                                       Value positions, Value sequenceOffsets,
                                                       Value stateSlots);

} // namespace mlir::moec::moe

#endif // MOEC_LIB_DIALECT_MOE_REFERENCE_STEPSEQUENCES_H
