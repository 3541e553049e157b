#include "AttentionShape.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::moec;

// Enough rows that the products of a prefill are limited by arithmetic, few enough that their sums
// stay in the first cache.
static constexpr int64_t rowsWanted = 32;
static constexpr int64_t mostTileTokens = 8;
static constexpr int64_t keysPerChunk = 64;

AttentionShape::AttentionShape(moe::AttentionOp op, const TargetDescription &target)
    : cache(op.getCache().getType()) {
  kvHeads = cache.getKvHeads();
  keyDim = cache.getKeyDim();
  valueDim = cache.getValueDim();
  block = cache.getBlock();
  group = op.getQuery().getType().getDimSize(1) / kvHeads;
  parts = llvm::divideCeil(group, rowsWanted);
  partHeads = llvm::divideCeil(group, parts);
  tileTokens = std::clamp<int64_t>(rowsWanted / partHeads, 1, mostTileTokens);
  // Sums of 16 lanes: with 16 registers of 8 lanes four rows leave room for operands, with 32 of 16
  // lanes eight do and hide the latency of the additions.
  rowBlock = target.getVectorBytes() == 64 ? 8 : 4;
  rows = llvm::alignTo(tileTokens * partHeads, rowBlock);
  lanes = std::min<int64_t>(block, 16);
  chunk = llvm::alignTo(keysPerChunk, block);
  valueLanes = std::min<int64_t>(valueDim, 16);
}
