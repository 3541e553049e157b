//===- SymbolicSize.cpp - sizes as polynomials over named dimensions
//----------------------------===//

#include "SymbolicSize.h"

#include <algorithm>

namespace mlir::moec::onnx_import {

namespace {
/// A graph whose sizes have more terms than this is not one that an exporter writes.
constexpr size_t maximumTerms = 256;
constexpr size_t maximumDegree = 16;

SymbolicSize::Product multiplyProducts(const SymbolicSize::Product &a,
                                       const SymbolicSize::Product &b) {
  SymbolicSize::Product result;
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

/// a / b, if every symbol of b is in a.
std::optional<SymbolicSize::Product> divideProducts(const SymbolicSize::Product &a,
                                                    const SymbolicSize::Product &b) {
  if (!std::includes(a.begin(), a.end(), b.begin(), b.end()))
    return std::nullopt;
  SymbolicSize::Product result;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

/// Orders terms by degree and then by symbols: an order that products respect, as division needs.
bool precedes(const SymbolicSize::Product &a, const SymbolicSize::Product &b) {
  if (a.size() != b.size())
    return a.size() < b.size();
  // Of two products of one degree the one with more of the lowest symbol is the larger.
  return std::lexicographical_compare(b.begin(), b.end(), a.begin(), a.end());
}

const std::pair<const SymbolicSize::Product, int64_t> &leadingTerm(const SymbolicSize &size) {
  return *std::max_element(size.terms().begin(), size.terms().end(),
                           [](const auto &a, const auto &b) { return precedes(a.first, b.first); });
}
} // namespace

SymbolicSize::SymbolicSize(int64_t constant) {
  if (constant != 0)
    coefficients[{}] = constant;
}

SymbolicSize SymbolicSize::symbol(unsigned symbol) {
  SymbolicSize result;
  result.coefficients[{symbol}] = 1;
  return result;
}

std::optional<int64_t> SymbolicSize::constant() const {
  if (coefficients.empty())
    return 0;
  if (coefficients.size() == 1 && coefficients.begin()->first.empty())
    return coefficients.begin()->second;
  return std::nullopt;
}

bool SymbolicSize::addTerm(const Product &product, int64_t coefficient) {
  if (product.size() > maximumDegree)
    return false;
  int64_t &entry = coefficients[product];
  if (__builtin_add_overflow(entry, coefficient, &entry))
    return false;
  if (entry == 0)
    coefficients.erase(product);
  return coefficients.size() <= maximumTerms;
}

std::optional<SymbolicSize> SymbolicSize::add(const SymbolicSize &a, const SymbolicSize &b) {
  SymbolicSize result = a;
  for (const auto &[product, coefficient] : b.coefficients)
    if (!result.addTerm(product, coefficient))
      return std::nullopt;
  return result;
}

std::optional<SymbolicSize> SymbolicSize::subtract(const SymbolicSize &a, const SymbolicSize &b) {
  std::optional<SymbolicSize> negated = multiply(b, SymbolicSize(-1));
  return negated ? add(a, *negated) : std::nullopt;
}

std::optional<SymbolicSize> SymbolicSize::multiply(const SymbolicSize &a, const SymbolicSize &b) {
  SymbolicSize result;
  for (const auto &[productA, coefficientA] : a.coefficients) {
    for (const auto &[productB, coefficientB] : b.coefficients) {
      int64_t coefficient;
      if (__builtin_mul_overflow(coefficientA, coefficientB, &coefficient) ||
          !result.addTerm(multiplyProducts(productA, productB), coefficient))
        return std::nullopt;
    }
  }
  return result;
}

std::optional<SymbolicSize> SymbolicSize::divideExactly(const SymbolicSize &a,
                                                        const SymbolicSize &b) {
  if (b.coefficients.empty())
    return std::nullopt;
  const auto &[divisorProduct, divisorCoefficient] = leadingTerm(b);
  SymbolicSize quotient, rest = a;
  while (!rest.coefficients.empty()) {
    const auto &[product, coefficient] = leadingTerm(rest);
    std::optional<Product> quotientProduct = divideProducts(product, divisorProduct);
    // INT64_MIN / -1 is the one division that overflows.
    if (!quotientProduct || (divisorCoefficient == -1 && coefficient == INT64_MIN) ||
        coefficient % divisorCoefficient != 0)
      return std::nullopt;
    SymbolicSize term;
    term.coefficients[*quotientProduct] = coefficient / divisorCoefficient;
    std::optional<SymbolicSize> product2 = multiply(term, b);
    std::optional<SymbolicSize> nextRest = product2 ? subtract(rest, *product2) : std::nullopt;
    std::optional<SymbolicSize> nextQuotient = add(quotient, term);
    if (!nextRest || !nextQuotient)
      return std::nullopt;
    rest = std::move(*nextRest);
    quotient = std::move(*nextQuotient);
  }
  return quotient;
}

bool SymbolicSize::isAtLeast(int64_t bound) const {
  int64_t constantTerm = 0;
  for (const auto &[product, coefficient] : coefficients) {
    if (product.empty())
      constantTerm = coefficient;
    else if (coefficient < 0)
      return false;
  }
  return constantTerm >= bound;
}

std::string SymbolicSize::toString(const std::function<std::string(unsigned)> &name) const {
  if (coefficients.empty())
    return "0";
  std::string text;
  for (const auto &[product, coefficient] : coefficients) {
    if (!text.empty())
      text += " + ";
    std::string factors;
    for (unsigned symbol : product)
      factors += (factors.empty() ? "" : "*") + name(symbol);
    if (factors.empty())
      text += std::to_string(coefficient);
    else
      text += coefficient == 1 ? factors : std::to_string(coefficient) + "*" + factors;
  }
  return text;
}

} // namespace mlir::moec::onnx_import
