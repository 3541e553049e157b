// How far compiled code may be from a reference.
#ifndef MOEC_TOOLS_MOEC_VERIFY_TOLERANCES_H
#define MOEC_TOOLS_MOEC_VERIFY_TOLERANCES_H

#include "moec/Compiler/Segments.h"

namespace moec::verify {

// All are relative root mean squares.
struct Tolerances {
  double f32 = 1e-5;    // of a layer, or an op, whose sums may be taken in another order
  double logits = 1e-4; // of the whole model in f32
  double bf16 = 2.5e-3; // that one rounding to the type may make
  double f16 = 3.2e-4;
};

// How much `value` may differ when the segment's inputs are equal. Roundings to 16 bits happen at
// other places in compiled code (fused ops do not round between them), and each makes an error of
// its own: after n of them in a row their squares add up, and sqrt(n) times that of one is allowed.
// n is counted along the longest way from the segment's inputs; attention rounds its probabilities
// once more, experts what is between their two products and each expert's share.
double allowedError(const mlir::moec::Segment &segment, mlir::Value value,
                    const Tolerances &tolerances);

} // namespace moec::verify

#endif
