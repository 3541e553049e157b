//===- ApproximateMath.h - activations whose results are rounded to 16 bits -------------------===//
//
// From the GPU's approximate power of two and reciprocal: relative errors below 2^-16, a small part
// of what the rounding behind them costs, with far fewer instructions.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_APPROXIMATEMATH_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_APPROXIMATEMATH_H

#include "../GatedActivation.h"

namespace mlir::moec {

class ApproximateMath : public ActivationMath {
public:
  Value sigmoid(CodeBuilder &code, Value x) const override;
  Value tanh(CodeBuilder &code, Value x) const override;
  Value divide(CodeBuilder &code, Value x, double divisor) const override;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_APPROXIMATEMATH_H
