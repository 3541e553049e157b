// The loops of a linalg op and where each point of them lies in an operand.
#ifndef MOEC_LIB_DIALECT_MOE_REFERENCE_ITERATIONSPACE_H
#define MOEC_LIB_DIALECT_MOE_REFERENCE_ITERATIONSPACE_H

#include "mlir/IR/AffineMap.h"
#include "mlir/Support/LLVM.h"

#include <optional>

namespace mlir::moec::moe {

/// Counts through all points of `sizes`, the last dimension fastest: `for (Points p(sizes);
/// p.isValid(); p.next())`.
class Points {
public:
  explicit Points(ArrayRef<int64_t> sizes)
      : sizes(sizes), point(sizes.size(), 0), valid(!llvm::is_contained(sizes, 0)) {}

  bool isValid() const { return valid; }
  ArrayRef<int64_t> get() const { return point; }
  int64_t operator[](size_t dim) const { return point[dim]; }
  void next() {
    for (size_t dim = sizes.size(); dim-- > 0;) {
      if (++point[dim] < sizes[dim])
        return;
      point[dim] = 0;
    }
    valid = false;
  }

private:
  ArrayRef<int64_t> sizes;
  SmallVector<int64_t> point;
  bool valid;
};

/// Row-major index of a point.
inline int64_t linearize(ArrayRef<int64_t> point, ArrayRef<int64_t> shape) {
  int64_t index = 0;
  for (auto [i, size] : llvm::zip_equal(point, shape))
    index = index * size + i;
  return index;
}

/// The value of an expression; nothing when it divides by something that is not positive.
std::optional<int64_t> evaluateAffine(AffineExpr expr, ArrayRef<int64_t> dims,
                                      ArrayRef<int64_t> symbols);

/// Where an operand is accessed: an indexing map over a shape.
class OperandAccess {
public:
  OperandAccess(AffineMap map, ArrayRef<int64_t> shape, ArrayRef<int64_t> loopSizes);

  /// Row-major index of the element, -1 when the map leads out of the shape.
  int64_t getIndex(ArrayRef<int64_t> point) const;
  /// How far the index moves with a step of the innermost loop, when that is the same everywhere
  /// and the map stays within the shape.
  std::optional<int64_t> getInnerStride() const;

private:
  AffineMap map;
  SmallVector<int64_t> shape;
  // For maps that are sums of multiples: index = constant + sum of coefficients * loops.
  bool isLinear = false;
  int64_t constant = 0;
  SmallVector<int64_t> coefficients;
};

} // namespace mlir::moec::moe

#endif // MOEC_LIB_DIALECT_MOE_REFERENCE_ITERATIONSPACE_H
