// NumPy's .npy files (format 1.0 to 3.0).
//
// Types that numpy lacks are stored the way ml_dtypes stores them: as raw elements ('<V2' for bf16,
// '|V1' for the 8-bit floats), sub-byte types one element a byte. Such a file does not say which
// type it holds; whoever reads it must know.
#ifndef MOERT_BASE_NPY_H
#define MOERT_BASE_NPY_H

#include "runtime/base/ElementType.h"
#include "runtime/base/File.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace moert {

struct NpyArray {
  char kind = 0; // 'f', 'i', 'u', 'b' as numpy has them, or 'V': raw elements
  unsigned itemBytes = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data; // row-major, little-endian, as in the file

  // The type that the file itself names; Unspecified for raw elements.
  ElementType type() const;
  std::string typeToString() const; // "<f4" or "<V2", for messages

  // The elements in the memory layout of `wanted` (ElementType.h). Accepts the same type, raw
  // elements of the same width, and unsigned 8- or 16-bit integers as the raw bits of a
  // floating-point type; never converts values.
  Result<std::vector<std::byte>> elements(ElementType wanted) const;
  // Integers of any width, one by one; an error for other types and for values outside [least,
  // most].
  Result<std::vector<std::int64_t>> integers(std::int64_t least, std::int64_t most) const;
};

// The data may be at most `limit` bytes.
Result<NpyArray> readNpy(const File &file, std::uint64_t limit = std::uint64_t(1) << 36);

// `bytes` in the memory layout of `type`. Written atomically.
Status writeNpy(const std::string &path, ElementType type, std::span<const std::int64_t> shape,
                std::span<const std::byte> bytes);

} // namespace moert

#endif
