#include "IterationSpace.h"

#include "mlir/IR/AffineExpr.h"

using namespace mlir;
using namespace mlir::moec::moe;

std::optional<int64_t> mlir::moec::moe::evaluateAffine(AffineExpr expr, ArrayRef<int64_t> dims,
                                                       ArrayRef<int64_t> symbols) {
  if (auto value = dyn_cast<AffineConstantExpr>(expr))
    return value.getValue();
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return dims[dim.getPosition()];
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<int64_t> left = evaluateAffine(binary.getLHS(), dims, symbols);
  std::optional<int64_t> right = evaluateAffine(binary.getRHS(), dims, symbols);
  if (!left || !right)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add)
    return *left + *right;
  if (expr.getKind() == AffineExprKind::Mul)
    return *left * *right;
  if (*right <= 0)
    return std::nullopt;
  int64_t remainder = (*left % *right + *right) % *right;
  if (expr.getKind() == AffineExprKind::Mod)
    return remainder;
  int64_t floor = (*left - remainder) / *right;
  return expr.getKind() == AffineExprKind::FloorDiv ? floor : floor + (remainder != 0);
}

/// Adds `factor * expr` to a linear form; false for divisions and remainders.
static bool addLinear(AffineExpr expr, int64_t factor, int64_t &constant,
                      MutableArrayRef<int64_t> coefficients) {
  if (auto value = dyn_cast<AffineConstantExpr>(expr)) {
    constant += factor * value.getValue();
    return true;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    coefficients[dim.getPosition()] += factor;
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (expr.getKind() == AffineExprKind::Add)
    return addLinear(binary.getLHS(), factor, constant, coefficients) &&
           addLinear(binary.getRHS(), factor, constant, coefficients);
  auto multiple = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (expr.getKind() != AffineExprKind::Mul || !multiple)
    return false;
  return addLinear(binary.getLHS(), factor * multiple.getValue(), constant, coefficients);
}

OperandAccess::OperandAccess(AffineMap map, ArrayRef<int64_t> shape, ArrayRef<int64_t> loopSizes)
    : map(map), shape(shape), coefficients(loopSizes.size(), 0) {
  isLinear = true;
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape)) {
    int64_t offset = 0;
    SmallVector<int64_t> factors(loopSizes.size(), 0);
    if (!addLinear(expr, 1, offset, factors)) {
      isLinear = false;
      return;
    }
    // The extreme values of the form must lie within the dimension.
    int64_t least = offset, most = offset;
    for (auto [factor, loop] : llvm::zip_equal(factors, loopSizes))
      (factor < 0 ? least : most) += factor * (loop - 1);
    if (least < 0 || most >= size) {
      isLinear = false;
      return;
    }
    constant = constant * size + offset;
    for (auto [sum, factor] : llvm::zip_equal(coefficients, factors))
      sum = sum * size + factor;
  }
}

int64_t OperandAccess::getIndex(ArrayRef<int64_t> point) const {
  if (isLinear) {
    int64_t index = constant;
    for (auto [factor, i] : llvm::zip_equal(coefficients, point))
      index += factor * i;
    return index;
  }
  int64_t index = 0;
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape)) {
    std::optional<int64_t> i = evaluateAffine(expr, point, {});
    if (!i || *i < 0 || *i >= size)
      return -1;
    index = index * size + *i;
  }
  return index;
}

std::optional<int64_t> OperandAccess::getInnerStride() const {
  if (!isLinear)
    return std::nullopt;
  return coefficients.empty() ? 0 : coefficients.back();
}
