// Element types of tensors, their names in files, and how they are stored.
//
// In memory elements lie in row-major order without padding. Types of less than 8 bits are packed,
// the first element in the lowest bits of the first byte; I1 alone takes a whole byte (0 or 1).
#ifndef MOERT_BASE_ELEMENTTYPE_H
#define MOERT_BASE_ELEMENTTYPE_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace moert {

// The numbers are those of moec.bundle.ElementType in bundle.proto.
enum class ElementType : std::uint8_t {
  Unspecified = 0,
  F32 = 1,
  F16 = 2,
  BF16 = 3,
  F64 = 4,
  I1 = 5,
  I4 = 6,
  I8 = 7,
  I16 = 8,
  I32 = 9,
  I64 = 10,
  U4 = 11,
  U8 = 12,
  U16 = 13,
  U32 = 14,
  U64 = 15,
  F8E4M3 = 16, // finite and NaN only: what ml_dtypes calls float8_e4m3fn
  F8E5M2 = 17,
  E8M0 = 18,
  F4E2M1 = 19,
  I2 = 20,
  U2 = 21,
  F8E4M3FNUZ = 22,
  F8E5M2FNUZ = 23,
};
inline constexpr unsigned elementTypeCount = 24;

// "f32", "bf16", "f8e4m3" ...: how this project writes types. "unspecified" for anything out of
// range.
std::string_view elementTypeName(ElementType type);
std::optional<ElementType> elementTypeFromName(std::string_view name);

// Bits that one element takes in memory: 8 for I1, 4 for I4. 0 for Unspecified.
unsigned storageBits(ElementType type);

// Whether the element is narrower than a byte and so shares it with others.
inline bool isPacked(ElementType type) { return storageBits(type) != 0 && storageBits(type) < 8; }

// Bytes of a tensor; none when a dimension is negative or the size exceeds 2^63 - 1.
std::optional<std::uint64_t> tensorBytes(ElementType type, std::span<const std::int64_t> shape);

// safetensors' names: "F32", "BF16", "F8_E4M3", "F4" ...
std::optional<ElementType> elementTypeFromSafetensors(std::string_view name);
std::string_view safetensorsName(ElementType type); // empty when the format has none

// "[2, 3]".
std::string shapeToString(std::span<const std::int64_t> shape);

// Rounds to nearest, ties to even; NaN stays NaN.
std::uint16_t bf16FromFloat(float value);
float floatFromBf16(std::uint16_t bits);
std::uint16_t f16FromFloat(float value);
float floatFromF16(std::uint16_t bits);
// Float8 and smaller floating-point types, from one element's bits.
float floatFromSmall(ElementType type, std::uint8_t bits);

} // namespace moert

#endif
