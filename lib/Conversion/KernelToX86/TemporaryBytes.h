//===- TemporaryBytes.h - how much memory a kernel's temporary needs --------------------------===//

#ifndef MOEC_CONVERSION_KERNELTOX86_TEMPORARYBYTES_H
#define MOEC_CONVERSION_KERNELTOX86_TEMPORARYBYTES_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::moec {

/// The most bytes that a temporary needs, rounded up to `alignment`; where that is more than `limit`,
/// any number above it. Fails when the size has no bound.
FailureOr<int64_t> boundTemporaryBytes(memref::AllocOp op, int64_t limit, int64_t alignment);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_KERNELTOX86_TEMPORARYBYTES_H
