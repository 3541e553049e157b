#include "TemporaryBytes.h"

#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

FailureOr<int64_t> mlir::moec::boundTemporaryBytes(memref::AllocOp op, int64_t limit,
                                                   int64_t alignment) {
  MemRefType type = op.getType();
  if (!type.getElementType().isIntOrIndexOrFloat())
    return failure();
  int64_t bytes =
      type.getElementType().isIndex() ? 8 : llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  auto dynamic = op.getDynamicSizes().begin();
  for (int64_t size : type.getShape()) {
    if (ShapedType::isDynamic(size)) {
      FailureOr<int64_t> bound = ValueBoundsConstraintSet::computeConstantBound(
          presburger::BoundType::UB, ValueBoundsConstraintSet::Variable(*dynamic++), nullptr,
          /*closedUB=*/true);
      if (failed(bound))
        return failure();
      size = std::max<int64_t>(*bound, 0);
    }
    // Compared before the product can overflow.
    if (size > limit || (bytes *= size) > limit)
      return limit + 1;
  }
  return llvm::alignTo(std::max<int64_t>(bytes, 1), alignment);
}
