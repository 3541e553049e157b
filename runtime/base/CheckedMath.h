// Integer arithmetic that reports overflow instead of wrapping. Every size that comes from a file
// goes through these.
#ifndef MOERT_BASE_CHECKEDMATH_H
#define MOERT_BASE_CHECKEDMATH_H

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace moert {

template <typename T>
[[nodiscard]] constexpr bool checkedAdd(T a, T b, T &result) {
  return !__builtin_add_overflow(a, b, &result);
}

template <typename T>
[[nodiscard]] constexpr bool checkedMultiply(T a, T b, T &result) {
  return !__builtin_mul_overflow(a, b, &result);
}

// Whether [offset, offset + bytes) lies within [0, limit).
[[nodiscard]] constexpr bool rangeFits(std::uint64_t offset, std::uint64_t bytes,
                                       std::uint64_t limit) {
  return offset <= limit && bytes <= limit - offset;
}

// Rounds up to a multiple of `alignment`, a power of two.
[[nodiscard]] constexpr bool checkedAlign(std::uint64_t value, std::uint64_t alignment,
                                          std::uint64_t &result) {
  if (!checkedAdd(value, alignment - 1, result))
    return false;
  result &= ~(alignment - 1);
  return true;
}

// The product of the dimensions; none when one is negative or the product exceeds int64. Of several
// zero and huge dimensions the order does not matter: a zero makes the product zero.
[[nodiscard]] inline std::optional<std::int64_t> elementCount(std::span<const std::int64_t> shape) {
  bool zero = false;
  for (std::int64_t size : shape) {
    if (size < 0)
      return std::nullopt;
    zero |= size == 0;
  }
  if (zero)
    return 0;
  std::int64_t count = 1;
  for (std::int64_t size : shape)
    if (!checkedMultiply(count, size, count))
      return std::nullopt;
  return count;
}

} // namespace moert

#endif
