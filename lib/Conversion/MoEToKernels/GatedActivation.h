//===- GatedActivation.h - the activation between an expert's products ------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_GATEDACTIVATION_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_GATEDACTIVATION_H

#include "CodeBuilder.h"

#include "moec/Dialect/MoE/IR/MoE.h"

namespace mlir::moec {

/// activation(gate, up) on f32 vectors, as moe.activation's table defines it.
Value buildActivation(CodeBuilder &code, moe::ActivationAttr activation, Value gate, Value up);

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_GATEDACTIVATION_H
