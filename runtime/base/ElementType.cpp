#include "runtime/base/ElementType.h"

#include "runtime/base/CheckedMath.h"

#include <array>
#include <bit>
#include <cmath>

namespace moert {

namespace {

struct Description {
  std::string_view name;
  std::string_view safetensors;
  unsigned bits;
};

// Indexed by ElementType.
constexpr std::array<Description, elementTypeCount> descriptions = {{
    {"unspecified", "", 0},
    {"f32", "F32", 32},
    {"f16", "F16", 16},
    {"bf16", "BF16", 16},
    {"f64", "F64", 64},
    {"i1", "BOOL", 8},
    {"i4", "", 4},
    {"i8", "I8", 8},
    {"i16", "I16", 16},
    {"i32", "I32", 32},
    {"i64", "I64", 64},
    {"u4", "", 4},
    {"u8", "U8", 8},
    {"u16", "U16", 16},
    {"u32", "U32", 32},
    {"u64", "U64", 64},
    {"f8e4m3", "F8_E4M3", 8},
    {"f8e5m2", "F8_E5M2", 8},
    {"e8m0", "F8_E8M0", 8},
    {"f4e2m1", "F4", 4},
    {"i2", "", 2},
    {"u2", "", 2},
    {"f8e4m3fnuz", "F8_E4M3FNUZ", 8},
    {"f8e5m2fnuz", "F8_E5M2FNUZ", 8},
}};

const Description &describe(ElementType type) {
  auto index = static_cast<std::size_t>(type);
  return descriptions[index < descriptions.size() ? index : 0];
}

// A float of the given widths. `specials` says what the all-ones exponent means.
enum class Specials { IeeeLike, NanOnly, NegativeZeroIsNan, None };
float decode(std::uint8_t bits, unsigned exponentBits, unsigned mantissaBits, int bias,
             Specials specials) {
  unsigned mantissaMask = (1u << mantissaBits) - 1;
  unsigned exponentMask = (1u << exponentBits) - 1;
  bool negative = (bits >> (exponentBits + mantissaBits)) & 1;
  unsigned exponent = (bits >> mantissaBits) & exponentMask;
  unsigned mantissa = bits & mantissaMask;
  float sign = negative ? -1.0f : 1.0f;
  if (specials == Specials::IeeeLike && exponent == exponentMask)
    return mantissa ? std::nanf("") : sign * INFINITY;
  if (specials == Specials::NanOnly && exponent == exponentMask && mantissa == mantissaMask)
    return std::nanf("");
  if (specials == Specials::NegativeZeroIsNan && negative && exponent == 0 && mantissa == 0)
    return std::nanf("");
  int scale = static_cast<int>(mantissaBits);
  if (exponent == 0)
    return sign * std::ldexp(static_cast<float>(mantissa), 1 - bias - scale);
  return sign * std::ldexp(static_cast<float>(mantissa | (1u << mantissaBits)),
                           static_cast<int>(exponent) - bias - scale);
}

} // namespace

std::string_view elementTypeName(ElementType type) { return describe(type).name; }

std::optional<ElementType> elementTypeFromName(std::string_view name) {
  for (unsigned i = 1; i < elementTypeCount; ++i)
    if (descriptions[i].name == name)
      return static_cast<ElementType>(i);
  return std::nullopt;
}

unsigned storageBits(ElementType type) { return describe(type).bits; }

std::optional<std::uint64_t> tensorBytes(ElementType type, std::span<const std::int64_t> shape) {
  std::optional<std::int64_t> count = elementCount(shape);
  std::int64_t bits = storageBits(type);
  if (!count || bits == 0)
    return std::nullopt;
  std::int64_t bytes;
  if (bits >= 8) {
    if (!checkedMultiply(*count, bits / 8, bytes))
      return std::nullopt;
  } else {
    std::int64_t perByte = 8 / bits;
    bytes = *count / perByte + (*count % perByte != 0);
  }
  return static_cast<std::uint64_t>(bytes);
}

std::optional<ElementType> elementTypeFromSafetensors(std::string_view name) {
  if (name.empty())
    return std::nullopt;
  for (unsigned i = 1; i < elementTypeCount; ++i)
    if (descriptions[i].safetensors == name)
      return static_cast<ElementType>(i);
  return std::nullopt;
}

std::string_view safetensorsName(ElementType type) { return describe(type).safetensors; }

std::string shapeToString(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::uint16_t bf16FromFloat(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value))
    return static_cast<std::uint16_t>((bits >> 16) | 0x40); // a quiet NaN, whatever bits are cut
  bits += 0x7fff + ((bits >> 16) & 1);
  return static_cast<std::uint16_t>(bits >> 16);
}

float floatFromBf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t f16FromFloat(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return sign | 0x7e00;
  if (magnitude >= 0x477ff000) // rounds to 65520 or more
    return sign | 0x7c00;
  if (magnitude < 0x38800000) { // subnormal in f16: the sum rounds at the right bit
    float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000));
  }
  magnitude += 0xfff + ((magnitude >> 13) & 1);
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000) >> 13));
}

float floatFromF16(std::uint16_t bits) {
  bool negative = bits >> 15;
  unsigned exponent = (bits >> 10) & 31;
  unsigned mantissa = bits & 1023;
  float magnitude;
  if (exponent == 31)
    magnitude = mantissa ? std::nanf("") : INFINITY;
  else if (exponent == 0)
    magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  else
    magnitude = std::ldexp(static_cast<float>(mantissa | 1024), static_cast<int>(exponent) - 25);
  return negative ? -magnitude : magnitude;
}

float floatFromSmall(ElementType type, std::uint8_t bits) {
  switch (type) {
  case ElementType::F8E4M3:
    return decode(bits, 4, 3, 7, Specials::NanOnly);
  case ElementType::F8E5M2:
    return decode(bits, 5, 2, 15, Specials::IeeeLike);
  case ElementType::F8E4M3FNUZ:
    return decode(bits, 4, 3, 8, Specials::NegativeZeroIsNan);
  case ElementType::F8E5M2FNUZ:
    return decode(bits, 5, 2, 16, Specials::NegativeZeroIsNan);
  case ElementType::F4E2M1:
    return decode(bits & 15, 2, 1, 1, Specials::None);
  case ElementType::E8M0:
    return bits == 255 ? std::nanf("") : std::ldexp(1.0f, static_cast<int>(bits) - 127);
  default:
    return std::nanf("");
  }
}

} // namespace moert
