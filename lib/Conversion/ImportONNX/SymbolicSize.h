//===- SymbolicSize.h - sizes as polynomials over named dimensions
//------------------------------===//
//
// Dimensions of an ONNX graph are numbers or names, and what exporters compute from them
// ("2*batch*tokens", "past + tokens") are polynomials. Keeping them as polynomials decides which
// dimensions are equal, which a reshape merges, and where a slice ends, without running anything.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTONNX_SYMBOLICSIZE_H
#define MOEC_CONVERSION_IMPORTONNX_SYMBOLICSIZE_H

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlir::moec::onnx_import {

/// A polynomial with int64 coefficients over symbols. Symbols stand for sizes, so they are never
/// negative.
class SymbolicSize {
public:
  /// The symbols of a product, sorted, repeated for powers. The empty product is 1.
  using Product = std::vector<unsigned>;

  SymbolicSize() = default; // zero
  SymbolicSize(int64_t constant);
  static SymbolicSize symbol(unsigned symbol);

  /// The value when there is no symbol in it.
  std::optional<int64_t> constant() const;
  bool isConstant(int64_t value) const { return constant() == value; }

  /// Arithmetic that gives nothing where a coefficient would overflow.
  static std::optional<SymbolicSize> add(const SymbolicSize &a, const SymbolicSize &b);
  static std::optional<SymbolicSize> subtract(const SymbolicSize &a, const SymbolicSize &b);
  static std::optional<SymbolicSize> multiply(const SymbolicSize &a, const SymbolicSize &b);
  /// a / b when b divides a exactly, whatever the symbols' values.
  static std::optional<SymbolicSize> divideExactly(const SymbolicSize &a, const SymbolicSize &b);

  /// Whether the value is at least `bound` for all values of the symbols. False when unknown.
  bool isAtLeast(int64_t bound) const;

  bool operator==(const SymbolicSize &) const = default;

  const std::map<Product, int64_t> &terms() const { return coefficients; }
  std::string toString(const std::function<std::string(unsigned)> &name) const;

private:
  bool addTerm(const Product &product, int64_t coefficient);
  std::map<Product, int64_t> coefficients; // no zeros
};

} // namespace mlir::moec::onnx_import

#endif
