//===- CodeFragments.h - MXFP4 codes as register operands of warpgroup products ---------------===//
//
// The layout `fragments` of MoEAttrs.td: what it holds and where, how codes get into it and how they
// become bf16 in registers. A bf16 wants a code's sign in bit 15 and the rest in bits 8 to 6 of its
// half of a word. A word holds three such pairs at three rotations; what they leave free of two words
// holds two more: 16 codes become operands with 7 rotations and 9 logic operations.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_CODEFRAGMENTS_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_CODEFRAGMENTS_H

#include "HopperCode.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

class CodeFragments {
public:
  static constexpr int64_t tileRows = 64, tileColumns = 64;
  static constexpr int64_t codeBytes = 2048, tileBytes = 2176, factorBytes = tileRows * 4;
  /// Pairs of codes that a thread has of a row pair's block of 32 columns: two operands of four
  /// registers each.
  static constexpr int64_t pairs = 8;

  /// The layout for a weight of `op`: neighbouring rows are a gate and its up projection, or
  /// neighbouring columns of the result.
  static moe::LayoutAttr getLayout(moe::GroupedLinearOp op);

  /// `shape` is that of the weight: experts, rows, columns.
  explicit CodeFragments(ArrayRef<int64_t> shape)
      : rowTiles(llvm::divideCeil(shape[1], tileRows)),
        columnTiles(llvm::divideCeil(shape[2], tileColumns)) {}

  int64_t getRowTiles() const { return rowTiles; }
  int64_t getColumnTiles() const { return columnTiles; }
  /// A row of tiles and its factors.
  int64_t getRunBytes() const { return columnTiles * tileBytes + factorBytes; }

  /// The two words (i32) of a block of columns from its eight pairs, each a byte (i32) with one code
  /// in either nibble.
  static std::pair<Value, Value> pack(HopperCode &code, ArrayRef<Value> bytes);
  /// The eight pairs of two words as bf16, each times the factor of its row (a pair of bf16): the
  /// code's value times 2^-126 and the factor. All products are exact.
  static SmallVector<Value> unpack(HopperCode &code, Value first, Value second,
                                   ArrayRef<Value> factorOfRow);
  /// From a thread's four scale bytes (i32) the factors of block `block`: for each of its two rows a
  /// pair of bf16.
  static SmallVector<Value> getFactors(HopperCode &code, Value scales, int64_t block);

  /// What a stored scale has more than its own exponent: the 126 that codes lack as bf16.
  static constexpr int64_t scaleBias = 126;
  /// The largest scale byte for which no shift is needed.
  static constexpr int64_t largestScale = 128;

private:
  int64_t rowTiles, columnTiles;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_CODEFRAGMENTS_H
