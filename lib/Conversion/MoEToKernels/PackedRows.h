//===- PackedRows.h - activations laid out for products ---------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_PACKEDROWS_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_PACKEDROWS_H

#include "VectorCode.h"

namespace mlir::moec {

/// Where packed activations go. A block of 32 columns of a token is in one piece.
class RowDestination {
public:
  virtual ~RowDestination() = default;
  /// Stores f32 columns (a vector, or a scalar) of a block of a token from column `offset` of the
  /// block on.
  virtual void store(CodeBuilder &code, Value columns, Value token, Value block,
                     Value offset) const = 0;
};

/// f32 [blocks][tokens][32], flat.
class FloatRows : public RowDestination {
public:
  FloatRows(Value rows, Value tokens) : rows(rows), tokens(tokens) {}
  void store(CodeBuilder &code, Value columns, Value token, Value block,
             Value offset) const override;

private:
  Value rows, tokens;
};

/// Brings rows of an activation into the order that products read, with zeros behind the last
/// column. On the way they may go through an RMS norm.
class RowPacker {
public:
  /// `input` is a memref [rows, columns].
  RowPacker(Value input, int64_t columns);

  /// Applies rms_norm(row, weight, epsilon), rounded to the input's element type as the op of its
  /// own would.
  void setNorm(Value weight, double epsilon);

  /// Packs row `row` of the input as token `token`.
  void pack(CodeBuilder &code, Value row, const RowDestination &destination, Value token) const;

private:
  Value computeInverseRMS(CodeBuilder &code, Value row) const;
  Value sumSquares(CodeBuilder &code, Value row) const;
  /// Columns [column, column + lanes) of a row (one when lanes is 0, as a scalar).
  Value loadColumns(CodeBuilder &code, Value row, Value column, int64_t lanes, Value inverse) const;

  Value input;
  int64_t columns;
  Value normWeight;
  double epsilon = 0;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_PACKEDROWS_H
