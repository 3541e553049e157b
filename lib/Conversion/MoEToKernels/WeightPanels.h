//===- WeightPanels.h - weights as the kernels read them --------------------------------------===//
//
// Every weight is a sequence of panels of 16 rows, whatever its format, and a panel a sequence of
// blocks of 32 columns. The product kernels see vectors of 16 f32 numbers, one column of a panel,
// in an order of columns ("slots") that suits the format and is the same on every path through a
// kernel: so sums have the same bits on every path.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_WEIGHTPANELS_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_WEIGHTPANELS_H

#include "VectorCode.h"

#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Target/TargetDescription.h"

namespace mlir::moec {

/// Slots that are decoded together: what one vector of 64 bytes of MXFP4 codes holds for each row.
constexpr int64_t groupSlots = 8;
constexpr int64_t mxfp4PanelBytes = 272;

/// How the weight of a product lies on x86: `nibble_words` for MXFP4, `pairs` for bf16, plain
/// panels for f16 and f32.
moe::LayoutAttr getPanelLayout(Type weight);

/// Whether the kernels can read a weight of this type.
bool isPanelWeight(Type weight);

class WeightPanels {
public:
  /// `type` is the logical type of the weight, [N, K] or [E, N, K].
  explicit WeightPanels(Type type);

  int64_t getRows() const { return rows; }
  int64_t getColumns() const { return columns; }
  int64_t getPanels() const { return llvm::divideCeil(rows, panelRows); }
  int64_t getWholeBlocks() const { return columns / blockColumns; }
  int64_t getBlocks() const { return llvm::divideCeil(columns, blockColumns); }
  /// Slots of the block behind the whole ones, 0 when there is none.
  int64_t getTailSlots() const;
  int64_t getPanelBytes() const;
  bool isMXFP4() const { return format == Format::mxfp4; }
  /// bf16 in pairs: the operand of AMX products as it lies in memory.
  bool isPairs() const { return format == Format::pairs; }

  /// The column, within its group, of slot `slot` of a group.
  int64_t getColumnOfSlot(int64_t slot) const;

  /// From here on code is built: `storage` is the weight's buffer, `expert` the index of the expert
  /// or null.
  void attach(CodeBuilder &code, Value storage, Value expert, const TargetDescription &target);

  /// Index in the flat buffer of the first element of a panel's block.
  Value getBlockBase(CodeBuilder &code, Value panel, Value block) const;
  /// The first `slots` slots of group `group` of a block as f32 vectors, not yet scaled.
  SmallVector<Value> loadGroup(CodeBuilder &code, Value blockBase, Value group,
                               int64_t slots) const;
  /// The scales of the 16 rows of a block, exact for every scale byte; null for dense weights.
  Value loadScales(CodeBuilder &code, Value blockBase) const;

  /// For kernels with formats of their own: the 16 scale bytes of a block, one of its four vectors
  /// of 32 16-bit words (MXFP4), and the flat buffer.
  Value loadScaleBytes(CodeBuilder &code, Value blockBase) const;
  Value loadWords(CodeBuilder &code, Value blockBase, int64_t vector) const;
  Value getFlatStorage() const { return flat; }

private:
  enum class Format { mxfp4, pairs, plain };

  SmallVector<Value> decodeCodes(CodeBuilder &code, Value words, int64_t slots) const;

  Format format;
  int64_t rows, columns;
  unsigned elementBytes = 0;
  bool hasPermute512 = false, hasPermute256 = false;
  Value flat, expertBase;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_WEIGHTPANELS_H
