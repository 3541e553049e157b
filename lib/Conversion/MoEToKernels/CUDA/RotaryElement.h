//===- RotaryElement.h - rotary embeddings, one element a thread ------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_ROTARYELEMENT_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_ROTARYELEMENT_H

#include "BlockCode.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

/// Computes single elements of a rotated head, as moe.rope defines it. Without an attribute an
/// element stays what it is.
class RotaryElement {
public:
  RotaryElement(BlockCode &code, moe::RotaryAttr attribute);

  /// Element `i` of a head at `position` (i32), whose elements `load` gives as f32.
  Value build(BlockCode &code, Value position, Value i, function_ref<Value(Value)> load) const;

private:
  moe::RotaryAttr attribute;
  Value frequencies;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_ROTARYELEMENT_H
