//===- OutputRows.h - from sums to results: bias, activation, residual, rounding --------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_OUTPUTROWS_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_OUTPUTROWS_H

#include "PanelProduct.h"
#include "RowChunks.h"

namespace mlir::moec {

/// Writes a workgroup's share of the result: one chunk of columns, for one block of tokens after the other.
class OutputWriter {
public:
  OutputWriter(const WeightPanels &weight, const RowChunks &chunks,
               moe::ActivationAttr activation);

  /// Takes its buffers from the workgroup's scratch memory.
  void allocate(ScratchAllocator &allocator, Type f32);

  /// Copies the bias of the chunk's rows into scratch memory; `prefix` holds the index of the expert or nothing.
  void loadBias(CodeBuilder &code, Value bias, ValueRange prefix, Value chunk);
  /// The residual has the result's shape and is added before rounding.
  void setResidual(Value value) { residual = value; }

  /// Writes the chunk's columns of row `row` of `result` from the sums of token `token`.
  void write(CodeBuilder &code, const TokenBlock &block, Value chunk, Value token, Value result,
             Value row) const;

private:
  void writeVector(CodeBuilder &code, Value value, Value result, Value row, Value column) const;
  void writePart(CodeBuilder &code, Value value, Value result, Value row, Value column) const;

  const WeightPanels &weight;
  const RowChunks &chunks;
  moe::ActivationAttr activation;
  Value biasRows, part, residual;
  bool hasBias = false;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_OUTPUTROWS_H
