#include "PagedPositions.h"

using namespace mlir;
using namespace mlir::moec::moe;

FailureOr<PagedPositions> PagedPositions::create(Operation *op, ReferenceFrame &frame,
                                                 int64_t tokens, ReferenceCache &cache,
                                                 Value positions, Value tokenSequences,
                                                 Value blockTable, Allowed allowed) {
  PagedPositions result;
  result.op = op;
  result.cache = &cache;
  result.positions = &frame.getTensor(positions);
  result.tokenSequences = &frame.getTensor(tokenSequences);
  result.blockTable = &frame.getTensor(blockTable);
  if (failed(frame.checkShape(op, "positions", *result.positions, {tokens})) ||
      failed(frame.checkShape(op, "token_sequences", *result.tokenSequences, {tokens})))
    return failure();
  int64_t sequences = result.blockTable->getDimSize(0);
  int64_t covered = result.blockTable->getDimSize(1) * cache.getType().getBlock();
  for (int64_t t = 0; t < tokens; ++t) {
    if (int64_t sequence = result.getSequence(t); sequence < 0 || sequence >= sequences)
      return op->emitError() << "while interpreting: token " << t << " belongs to sequence "
                             << sequence << ", but the block table has " << sequences;
    int64_t position = result.getPosition(t);
    bool isAllowed = position >= 0 && (position < covered || allowed == Allowed::any);
    if (!isAllowed && !(position == -1 && allowed == Allowed::coveredOrNone))
      return op->emitError() << "while interpreting: token " << t << " has position " << position
                             << ", but the block table covers " << covered << " positions";
  }
  return result;
}

FailureOr<PagedPositions::Slot> PagedPositions::findSlot(int64_t sequence, int64_t position) const {
  int64_t size = cache->getType().getBlock();
  int64_t entry = position / size, width = blockTable->getDimSize(1);
  if (entry >= width)
    return op->emitError() << "while interpreting: position " << position << " of sequence "
                           << sequence << " is asked for, but the block table covers "
                           << width * size << " positions";
  int64_t block = blockTable->getInteger(sequence * width + entry);
  if (block < 0 || block >= cache->getBlocks())
    return op->emitError() << "while interpreting: entry [" << sequence << ", " << entry
                           << "] of the block table is " << block << ", but the pool has "
                           << cache->getBlocks() << " blocks";
  return Slot{block, position % size};
}
