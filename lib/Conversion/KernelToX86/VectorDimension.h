//===- VectorDimension.h - which loop of a linalg op becomes vectors --------------------------===//

#ifndef MOEC_CONVERSION_KERNELTOX86_VECTORDIMENSION_H
#define MOEC_CONVERSION_KERNELTOX86_VECTORDIMENSION_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

#include <optional>

namespace mlir::moec {

/// The loop along which most of the data that `op` touches are neighbours in memory.
std::optional<unsigned> getVectorDimension(linalg::LinalgOp op);

/// Whether linalg's vectoriser takes the op: arithmetic on numbers of whole bytes, no gathers.
bool isVectorizable(linalg::LinalgOp op);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_KERNELTOX86_VECTORDIMENSION_H
