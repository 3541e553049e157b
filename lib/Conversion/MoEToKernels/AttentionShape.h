//===- AttentionShape.h - how attention is cut into workgroups, rows and chunks ---------------===//
//
// A row is one query head of one token. All rows of a workgroup read the same keys and values:
// those of one kv head. The cuts depend on the op's types alone, and keys are taken in chunks that
// begin at absolute positions, so that a row's sums are the same whatever else is in the step.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_ATTENTIONSHAPE_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_ATTENTIONSHAPE_H

#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Target/TargetDescription.h"

namespace mlir::moec {

struct AttentionShape {
  AttentionShape(moe::AttentionOp op, const TargetDescription &target);

  moe::CacheType cache;
  int64_t kvHeads, keyDim, valueDim, block;
  int64_t group;      ///< query heads of a kv head
  int64_t parts;      ///< pieces that a large group is cut into, each for a workgroup of its own
  int64_t partHeads;  ///< heads of a piece; the last piece may have fewer
  int64_t tileTokens; ///< most tokens of a workgroup
  int64_t rowBlock;   ///< rows whose sums are in registers together
  int64_t rows;       ///< most rows of a workgroup, rounded up to whole row blocks
  int64_t lanes;      ///< keys of one vector
  int64_t chunk;      ///< keys between two looks at the running maximum
  int64_t valueLanes; ///< value columns of one vector

  /// A step is cut into min(tokens, ceil(tokens / tileTokens) + extraTiles) tiles of equal size: a
  /// step of few tokens gives every token, which is often a sequence of its own, to another
  /// workgroup.
  static constexpr int64_t extraTiles = 7;

  int64_t getWorkgroupsPerTile() const { return kvHeads * parts; }
  int64_t getChunkBlocks() const { return chunk / block; }
  int64_t getChunkPanels() const { return chunk / lanes; }
  /// Whether the rows of a block always see the same keys.
  bool rowBlocksHaveOneToken() const { return group % rowBlock == 0 && partHeads % rowBlock == 0; }

  /// Whether keys of a block can be taken as vectors at all.
  static bool supportsBlock(int64_t block) { return block % 16 == 0 || block < 16; }
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_ATTENTIONSHAPE_H
