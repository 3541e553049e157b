// Where the positions of a step's sequences lie in a cache.
#ifndef MOEC_LIB_DIALECT_MOE_REFERENCE_PAGEDPOSITIONS_H
#define MOEC_LIB_DIALECT_MOE_REFERENCE_PAGEDPOSITIONS_H

#include "Models.h"

namespace mlir::moec::moe {

/// The operands that say which token of a step belongs where.
class PagedPositions {
public:
  /// Which positions tokens may have: those that the block table covers, also -1, or any from 0 on,
  /// where tokens do not lie in the cache themselves.
  enum class Allowed { covered, coveredOrNone, any };
  /// Checks the sizes of the operands and every token's position and sequence. Emits a diagnostic.
  static FailureOr<PagedPositions> create(Operation *op, ReferenceFrame &frame, int64_t tokens,
                                          ReferenceCache &cache, Value positions,
                                          Value tokenSequences, Value blockTable,
                                          Allowed allowed = Allowed::covered);

  int64_t getPosition(int64_t token) const { return positions->getInteger(token); }
  int64_t getSequence(int64_t token) const { return tokenSequences->getInteger(token); }

  struct Slot {
    int64_t block, offset;
  };
  /// The slot of a position. Emits a diagnostic when the table does not cover it or leads out of the
  /// pool.
  FailureOr<Slot> findSlot(int64_t sequence, int64_t position) const;

private:
  Operation *op = nullptr;
  ReferenceCache *cache = nullptr;
  const ReferenceTensor *positions = nullptr, *tokenSequences = nullptr, *blockTable = nullptr;
};

} // namespace mlir::moec::moe

#endif // MOEC_LIB_DIALECT_MOE_REFERENCE_PAGEDPOSITIONS_H
