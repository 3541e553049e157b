//===- TileProduct.h - activations times weight panels on the matrix unit (AMX) ---------------===//
//
// Two panels at a time are converted to bf16 tiles in scratch memory (MXFP4) or read as they lie
// (bf16), and all tokens of the block run over them, two tiles of 16 tokens at once, with the sums
// in tile registers over all columns. An f32 activation is the sum of three bf16 numbers, exactly,
// and takes three products.
//
// The matrix unit takes subnormal bf16 numbers for zero. MXFP4 numbers under very small scales are
// subnormal, those under very large ones infinite in bf16, and NaN is a case of its own: panels
// that have such scales are left to the caller.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_TILEPRODUCT_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_TILEPRODUCT_H

#include "PackedRows.h"
#include "PanelProduct.h"

namespace mlir::moec {

class TileProduct : public RowDestination {
public:
  /// `input` is the element type of the activations.
  TileProduct(const WeightPanels &weight, Type input);

  /// Whether the target has the matrix unit and the weight is one that it can take.
  static bool isSupported(Type weight, const TargetDescription &target);

  /// Tokens that fit a block: their tiles stay in the L2 cache.
  int64_t getTokenCapacity() const;
  /// Fewer tokens than this are left to vectors.
  static constexpr int64_t leastTokens = 8;
  /// Tokens of a tile: the room for tokens in a block is a multiple of it.
  static constexpr int64_t tileTokens = 16;

  /// Takes its buffers from the workgroup's scratch memory.
  void allocate(ScratchAllocator &allocator, MLIRContext *context);

  /// Packs columns of a token into tiles.
  void store(CodeBuilder &code, Value columns, Value token, Value block,
             Value offset) const override;

  /// sums[q] = tiles * panel (firstPanel + q), for `count` panels from `firstSum` on; the sums of
  /// one more panel may be overwritten. `leftOver` gets the panels that the matrix unit cannot
  /// take: panel, sum and count.
  void build(CodeBuilder &code, const TokenBlock &block, Value firstPanel, Value firstSum,
             Value count, function_ref<void(Value, Value, Value)> leftOver) const;

private:
  /// What the panels of one step are called: panel of the weight, panel of the sums.
  struct Pair {
    Value panels[2], sums[2];
  };
  /// Converts both panels, or what is left of their last block, into tiles; true where a scale is
  /// out of range.
  Value convert(CodeBuilder &code, const Pair &pair) const;
  std::pair<Value, Value> convertBlock(CodeBuilder &code, Value panel, int64_t side, Value block,
                                       Value least, Value most) const;
  void copyTail(CodeBuilder &code, const Pair &pair) const;

  void multiply(CodeBuilder &code, const TokenBlock &block, const Pair &pair) const;
  void multiplyTiles(CodeBuilder &code, const TokenBlock &block, const Pair &pair, Value firstTile,
                     int64_t tiles) const;
  Value loadWeightTile(CodeBuilder &code, const Pair &pair, int64_t side, Value block,
                       bool fromScratch) const;

  const WeightPanels &weight;
  int64_t parts;
  /// bf16 [parts][tiles][blocks][16][32] and [blocks][2][16][32].
  Value tiles, slab;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_TILEPRODUCT_H
