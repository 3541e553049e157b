//===- MoEToLinalg.h - moe ops as linalg ------------------------------------------------------===//

#ifndef MOEC_CONVERSION_MOETOLINALG_H
#define MOEC_CONVERSION_MOETOLINALG_H

#include "mlir/IR/PatternMatch.h"

namespace mlir::moec {

/// Patterns for the moe ops whose operands and results are plain tensors: norms, rotary embeddings,
/// embeddings, row selection, products with dense weights, combination of experts, dequantisation.
/// Sums are in f32; results are rounded once.
void populateMoEToLinalgPatterns(RewritePatternSet &patterns);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_MOETOLINALG_H
