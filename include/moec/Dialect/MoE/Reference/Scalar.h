//===- Scalar.h - one number of any element type ----------------------------------------------===//
//
// The interpreter computes with numbers that are wider than every element type that it knows:
// floats as double, integers as int64. A ScalarType says how a number of one element type is
// stored, and rounds a wide number to it.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_DIALECT_MOE_REFERENCE_SCALAR_H
#define MOEC_DIALECT_MOE_REFERENCE_SCALAR_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace mlir::moec::moe {

/// A float or an integer; who holds it knows which. Integers are sign-extended, those of one bit
/// and of unsigned types zero-extended.
union Scalar {
  double real;
  int64_t integer;

  static Scalar fromReal(double value) { return {.real = value}; }
  static Scalar fromInteger(int64_t value) { return {.integer = value}; }
};

/// Storage and rounding of one element type.
class ScalarType {
public:
  /// Nothing for types that the interpreter does not know: integers of more than 64 bits, complex
  /// numbers, vectors.
  static std::optional<ScalarType> get(Type type);

  bool isReal() const { return kind != Kind::Integer; }
  /// Bits of the type; 64 for index.
  unsigned getBits() const { return bits; }
  /// Bytes that one element takes in a ReferenceTensor. Types of less than a byte take one.
  unsigned getBytes() const { return bytes; }

  Scalar load(const std::byte *bytes) const;
  /// Rounds to nearest, ties to even; integers wrap.
  void store(std::byte *bytes, Scalar value) const;
  /// The nearest value of this type.
  Scalar round(Scalar value) const;
  /// What stands in memory that nothing was written to: NaN or the least integer, so that reading
  /// it shows.
  Scalar getPoison() const;

  /// An integer of this type, read as signed and as unsigned.
  int64_t getSigned(Scalar value) const;
  uint64_t getUnsigned(Scalar value) const;

private:
  enum class Kind : uint8_t { Integer, Float64, Float32, BFloat16, Float16, SmallFloat };
  ScalarType() = default;

  Kind kind = Kind::Integer;
  bool isUnsigned = false;
  uint8_t bytes = 0;
  unsigned bits = 0;
  const llvm::fltSemantics *semantics = nullptr; // of small floats
};

/// What an elementwise op computes of one element of each operand, before the result is rounded to
/// its type. Empty for other ops.
using ScalarFunction = std::function<Scalar(const Scalar *operands)>;

} // namespace mlir::moec::moe

#endif // MOEC_DIALECT_MOE_REFERENCE_SCALAR_H
