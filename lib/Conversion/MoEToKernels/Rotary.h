//===- Rotary.h - rotary embeddings inside kernels --------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_ROTARY_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_ROTARY_H

#include "CodeBuilder.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

/// Code that rotates rows of f32 scratch memory: the frequencies are laid down once, then the sines
/// and cosines of a position serve all heads of a token. Without an attribute it takes no scratch
/// and builds nothing.
class Rotary {
public:
  Rotary(moe::RotaryAttr attribute, int64_t lanes, ScratchAllocator &allocator);

  explicit operator bool() const { return bool(attribute); }

  /// Stores the frequencies; once, before everything else.
  void layDownFrequencies(CodeBuilder &code) const;
  /// Computes cosines and sines for a position (i32).
  void setPosition(CodeBuilder &code, Value position) const;
  /// Rotates row `row` of `rows`, f32 [.., dim], for the position that was set.
  void rotate(CodeBuilder &code, Value rows, Value row) const;

private:
  void rotateHalves(CodeBuilder &code, Value rows, Value row) const;
  void rotateNeighbours(CodeBuilder &code, Value rows, Value row) const;

  moe::RotaryAttr attribute;
  int64_t lanes, pairs = 0;
  Value frequencies, cosines, sines;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_ROTARY_H
