//===- PanelProduct.h - activations times weight panels, in vector registers ------------------===//
//
// The heart of linear and grouped_linear. A workgroup has packed the rows of a block of tokens
// (PackedRows) and wants their products with a range of panels, as f32 sums in scratch memory. Few
// tokens: panels are decoded in registers and streamed past them. More tokens: each block of 16
// rows x 32 columns is decoded once into a buffer in the L1 cache, and tiles of tokens run over it.
//
// Every sum is built in one order: the slots of a block in ascending order by fused multiply-adds
// from zero, then the block's sum, scaled, onto the sum of the blocks before. So its bits depend
// neither on the path nor on the other tokens.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_PANELPRODUCT_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_PANELPRODUCT_H

#include "WeightPanels.h"

namespace mlir::moec {

/// The packed activations and the sums of one block of tokens, in scratch memory.
struct TokenBlock {
  /// f32 [blocks][tokens][32], flat, zero behind the last column.
  Value rows;
  /// f32 [panels of the workgroup][tokens][16], flat.
  Value sums;
  /// How many tokens there is room for in `rows` and `sums`, all of which are multiplied (index).
  Value tokens;
};

/// Up to this many tokens panels are streamed past them: decoding a panel again for the second half
/// of the tokens is then cheaper than writing it to a buffer.
constexpr int64_t fewTokens = 4;

class PanelProduct {
public:
  PanelProduct(const WeightPanels &weight, const TargetDescription &target);

  /// Takes the decode buffer from the workgroup's scratch memory.
  void allocate(ScratchAllocator &allocator, Type f32);

  /// Tokens that fit a block: so many that decoding is paid for, so few that their rows stay in the
  /// L2 cache.
  int64_t getTokenCapacity() const;

  /// sums[q] = rows * panel (firstPanel + q), for `count` panels from `firstSum` on; the sums of
  /// one more panel may be overwritten.
  void build(CodeBuilder &code, const TokenBlock &block, Value firstPanel, Value firstSum,
             Value count) const;
  /// The same for more than a few tokens.
  void buildMany(CodeBuilder &code, const TokenBlock &block, Value firstPanel, Value firstSum,
                 Value count) const {
    decodeOnce(code, block, firstPanel, firstSum, count);
  }
  /// The same in little code, for panels that are few in every model.
  void buildRare(CodeBuilder &code, const TokenBlock &block, Value firstPanel, Value firstSum,
                 Value count) const;

private:
  struct Tile {
    int64_t tokens, panels;
  };
  using Sums = SmallVector<Value>;

  void stream(CodeBuilder &code, const TokenBlock &block, Value firstPanel, Value firstSum,
              Value count) const;
  void streamPanels(CodeBuilder &code, const TokenBlock &block, Tile tile, Value panel, Value sum,
                    Value token) const;
  Sums streamBlock(CodeBuilder &code, const TokenBlock &block, Tile tile, Value panel, Value index,
                   Value token, int64_t slots, ValueRange sums) const;

  void decodeOnce(CodeBuilder &code, const TokenBlock &block, Value firstPanel, Value firstSum,
                  Value count) const;
  void decodePanels(CodeBuilder &code, const TokenBlock &block, ArrayRef<Value> panels,
                    Value sum) const;
  void multiplyBuffer(CodeBuilder &code, const TokenBlock &block, ArrayRef<Value> panels, Value sum,
                      Value index, int64_t slots) const;
  void multiplyTile(CodeBuilder &code, const TokenBlock &block, Tile tile, Value sum, Value index,
                    Value token, int64_t slots, ArrayRef<Value> scales) const;

  /// Adds the products of a group's slots to the sums of a block: sums[panel][token].
  void multiplyGroup(CodeBuilder &code, const TokenBlock &block, Tile tile, Value rowBase,
                     ArrayRef<SmallVector<Value>> columns, Sums &sums) const;
  /// Runs `body` for the groups of a block with the sums carried along, and returns the sums.
  Sums forEachGroup(CodeBuilder &code, Tile tile, int64_t slots,
                    function_ref<void(Value group, int64_t slots, Sums &sums)> body) const;
  /// Cuts `count` things into runs of `width` and single ones.
  void forEachRun(CodeBuilder &code, Value count, int64_t width,
                  function_ref<void(Value first, int64_t width)> body) const;

  const WeightPanels &weight;
  bool fused;
  /// Tokens and panels of the register tile over the decode buffer.
  Tile tile;
  int64_t vectorBytes;
  Value buffer;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_PANELPRODUCT_H
