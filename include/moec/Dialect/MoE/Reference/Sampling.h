//===- Sampling.h - choosing a token, as moe.sample defines it --------------------------------===//

#ifndef MOEC_DIALECT_MOE_REFERENCE_SAMPLING_H
#define MOEC_DIALECT_MOE_REFERENCE_SAMPLING_H

#include "mlir/Support/LLVM.h"

#include <cstdint>

namespace mlir::moec::moe {

/// How a token is chosen: moe.sample's operands for it. `random` is in [0, 1).
struct SampleOptions {
  double temperature = 0;
  int64_t topK = 0;
  double topP = 1, random = 0;
};

/// Chooses one of the columns of a row of logits, which is not empty.
int32_t sampleToken(ArrayRef<float> logits, const SampleOptions &options);

} // namespace mlir::moec::moe

#endif // MOEC_DIALECT_MOE_REFERENCE_SAMPLING_H
