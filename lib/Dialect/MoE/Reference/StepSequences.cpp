#include "StepSequences.h"

#include <set>

using namespace mlir;
using namespace mlir::moec::moe;

FailureOr<std::vector<StepSequence>>
mlir::moec::moe::readStepSequences(Operation *op, ReferenceFrame &frame, int64_t tokens,
                                   const ReferenceState &state, Value positionsValue,
                                   Value sequenceOffsets, Value stateSlots) {
  const ReferenceTensor &positions = frame.getTensor(positionsValue);
  const ReferenceTensor &offsets = frame.getTensor(sequenceOffsets);
  const ReferenceTensor &slots = frame.getTensor(stateSlots);
  int64_t sequences = slots.getDimSize(0);
  if (failed(frame.checkShape(op, "positions", positions, {tokens})) ||
      failed(frame.checkShape(op, "sequence_offsets", offsets, {sequences + 1})))
    return failure();
  auto complain = [&] { return op->emitError() << "while interpreting: "; };
  if (offsets.getInteger(0) != 0 || offsets.getInteger(sequences) != tokens)
    return complain() << "offsets must ascend from 0 to the step's " << tokens << " tokens, got "
                      << offsets.getInteger(0) << " to " << offsets.getInteger(sequences);
  std::vector<StepSequence> result;
  std::set<int64_t> taken;
  for (int64_t s = 0; s < sequences; ++s) {
    int64_t first = offsets.getInteger(s), end = offsets.getInteger(s + 1);
    int64_t slot = slots.getInteger(s);
    if (first > end || end > tokens)
      return complain() << "offsets must ascend, entry " << s + 1 << " is " << end << " after "
                        << first;
    if (slot < 0 || slot >= state.slots.getDimSize(0))
      return complain() << "sequence " << s << " has slot " << slot << ", but the state has "
                        << state.slots.getDimSize(0);
    if (!taken.insert(slot).second)
      return complain() << "sequence " << s << " has slot " << slot << ", as one before it";
    for (int64_t t = first + 1; t < end; ++t)
      if (positions.getInteger(t) != positions.getInteger(t - 1) + 1)
        return complain() << "token " << t << " has position " << positions.getInteger(t)
                          << " after position " << positions.getInteger(t - 1)
                          << " of the same sequence";
    if (first < end && positions.getInteger(first) < 0)
      return complain() << "token " << first << " has position " << positions.getInteger(first);
    if (first < end)
      result.push_back({first, end, slot, positions.getInteger(first) == 0});
  }
  return result;
}
