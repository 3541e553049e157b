//===- GatedActivation.h - the activation between an expert's products ------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_GATEDACTIVATION_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_GATEDACTIVATION_H

#include "CodeBuilder.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

/// The functions on f32 vectors that activations are made of; as exact as the target's own.
class ActivationMath {
public:
  virtual ~ActivationMath() = default;
  virtual Value sigmoid(CodeBuilder &code, Value x) const;
  virtual Value tanh(CodeBuilder &code, Value x) const;
  virtual Value divide(CodeBuilder &code, Value x, double divisor) const;
};

/// activation(gate, up) on f32 vectors, as moe.activation's table defines it.
Value buildActivation(CodeBuilder &code, moe::ActivationAttr activation, Value gate, Value up,
                      const ActivationMath &math = ActivationMath());

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_GATEDACTIVATION_H
