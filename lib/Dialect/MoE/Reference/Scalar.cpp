#include "moec/Dialect/MoE/Reference/Scalar.h"

#include "llvm/ADT/bit.h"

#include <cmath>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace mlir::moec::moe;

//===------------------------------------------------------------------------------------------===//
// Rounding. A double is brought to 24 bits by rounding to odd first: rounding that to bf16 or f16
// then gives what one rounding of the double would give.
//===------------------------------------------------------------------------------------------===//

static float roundToOdd(double value) {
  float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value))
    return nearest;
  uint32_t bits = llvm::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value))
    --bits; // towards zero; from infinity to the largest float
  return llvm::bit_cast<float>(bits | 1);
}

static uint16_t toBFloat16(double value) {
  uint32_t bits = llvm::bit_cast<uint32_t>(roundToOdd(value));
  if (std::isnan(value))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double fromBFloat16(uint16_t bits) {
  return llvm::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

static uint16_t toFloat16(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double magnitude = std::fabs(value);
  if (std::isnan(value))
    return sign | 0x7e00;
  if (magnitude >= 65520) // halfway between the largest number and the next power of two
    return sign | 0x7c00;
  // Steps of the result's last bit; nearbyint rounds halves to even.
  int exponent = magnitude == 0 ? -14 : std::max(std::ilogb(magnitude), -14);
  auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
  // A normal number's steps hold the implicit bit; a carry out of them moves on to the exponent.
  return sign | static_cast<uint16_t>(((exponent + 14) << 10) + steps);
}

static double fromFloat16(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = exponent == 31  ? (fraction ? std::numeric_limits<double>::quiet_NaN()
                                                 : std::numeric_limits<double>::infinity())
                     : exponent == 0 ? std::ldexp(fraction, -24)
                                     : std::ldexp(fraction + 1024, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

static uint8_t toSmallFloat(double value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool losesInformation;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInformation);
  return static_cast<uint8_t>(number.bitcastToAPInt().getZExtValue());
}

static double fromSmallFloat(uint8_t bits, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(semantics, llvm::APInt(llvm::APFloat::getSizeInBits(semantics), bits));
  if (number.isNaN())
    return std::numeric_limits<double>::quiet_NaN();
  bool losesInformation;
  number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
                 &losesInformation);
  return number.convertToDouble();
}

//===------------------------------------------------------------------------------------------===//
// ScalarType
//===------------------------------------------------------------------------------------------===//

std::optional<ScalarType> ScalarType::get(Type type) {
  ScalarType result;
  if (isa<IndexType>(type)) {
    result.bits = 64;
  } else if (auto integer = dyn_cast<IntegerType>(type)) {
    if (integer.getWidth() == 0 || integer.getWidth() > 64)
      return std::nullopt;
    result.bits = integer.getWidth();
    result.isUnsigned = integer.isUnsigned() || integer.getWidth() == 1;
  } else if (auto real = dyn_cast<FloatType>(type)) {
    result.bits = real.getWidth();
    if (type.isF64())
      result.kind = Kind::Float64;
    else if (type.isF32())
      result.kind = Kind::Float32;
    else if (type.isBF16())
      result.kind = Kind::BFloat16;
    else if (type.isF16())
      result.kind = Kind::Float16;
    else if (real.getWidth() <= 8)
      result.kind = Kind::SmallFloat;
    else
      return std::nullopt;
    result.semantics = &real.getFloatSemantics();
  } else {
    return std::nullopt;
  }
  result.bytes = result.bits <= 8 ? 1 : result.bits <= 16 ? 2 : result.bits <= 32 ? 4 : 8;
  return result;
}

template <typename T>
static T read(const std::byte *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

Scalar ScalarType::load(const std::byte *from) const {
  switch (kind) {
  case Kind::Float64:
    return Scalar::fromReal(read<double>(from));
  case Kind::Float32:
    return Scalar::fromReal(read<float>(from));
  case Kind::BFloat16:
    return Scalar::fromReal(fromBFloat16(read<uint16_t>(from)));
  case Kind::Float16:
    return Scalar::fromReal(fromFloat16(read<uint16_t>(from)));
  case Kind::SmallFloat:
    return Scalar::fromReal(fromSmallFloat(read<uint8_t>(from), *semantics));
  case Kind::Integer:
    break;
  }
  int64_t value = bytes == 1   ? read<int8_t>(from)
                  : bytes == 2 ? read<int16_t>(from)
                  : bytes == 4 ? read<int32_t>(from)
                               : read<int64_t>(from);
  return round(Scalar::fromInteger(value));
}

void ScalarType::store(std::byte *to, Scalar value) const {
  auto write = [to](auto stored) { std::memcpy(to, &stored, sizeof(stored)); };
  switch (kind) {
  case Kind::Float64:
    return write(value.real);
  case Kind::Float32:
    return write(static_cast<float>(value.real));
  case Kind::BFloat16:
    return write(toBFloat16(value.real));
  case Kind::Float16:
    return write(toFloat16(value.real));
  case Kind::SmallFloat:
    return write(toSmallFloat(value.real, *semantics));
  case Kind::Integer:
    break;
  }
  // Narrow integers keep their bits in the low end of their byte, the rest zero.
  uint64_t stored = getUnsigned(value);
  std::memcpy(to, &stored, bytes);
}

Scalar ScalarType::round(Scalar value) const {
  switch (kind) {
  case Kind::Float64:
    return value;
  case Kind::Float32:
    return Scalar::fromReal(static_cast<float>(value.real));
  case Kind::BFloat16:
    return Scalar::fromReal(fromBFloat16(toBFloat16(value.real)));
  case Kind::Float16:
    return Scalar::fromReal(fromFloat16(toFloat16(value.real)));
  case Kind::SmallFloat:
    return Scalar::fromReal(fromSmallFloat(toSmallFloat(value.real, *semantics), *semantics));
  case Kind::Integer:
    break;
  }
  return Scalar::fromInteger(isUnsigned ? static_cast<int64_t>(getUnsigned(value))
                                        : getSigned(value));
}

Scalar ScalarType::getPoison() const {
  if (isReal())
    return Scalar::fromReal(std::numeric_limits<double>::quiet_NaN());
  return round(Scalar::fromInteger(static_cast<int64_t>(uint64_t(1) << (bits - 1))));
}

int64_t ScalarType::getSigned(Scalar value) const {
  unsigned unused = 64 - bits;
  return static_cast<int64_t>(static_cast<uint64_t>(value.integer) << unused) >> unused;
}

uint64_t ScalarType::getUnsigned(Scalar value) const {
  unsigned unused = 64 - bits;
  return static_cast<uint64_t>(value.integer) << unused >> unused;
}
