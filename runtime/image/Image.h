// Images: read from files, and resized as the models' own processors do it.
#ifndef MOERT_IMAGE_IMAGE_H
#define MOERT_IMAGE_IMAGE_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace moert {

// Red, green and blue, a byte each, row by row from the top.
struct Image {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

// Larger images are refused before memory is taken for them. (Pillow, which the models' processors
// use, refuses them, too.)
constexpr std::uint64_t mostImagePixels = 178'956'970;
// Nor are files read that are larger than this.
constexpr std::uint64_t mostImageFileBytes = std::uint64_t(256) << 20;

// A JPEG or PNG file. Grey becomes colour, transparency is dropped, 16 bits become 8; the
// orientation of EXIF is followed. A file that is cut off or damaged is an error. `location` names
// the file in messages.
Result<Image> decodeImage(std::span<const std::byte> file, std::string_view location);

// The image in another size, of at least one pixel a side, by bicubic interpolation with
// antialiasing: the same numbers as Pillow's resize(BICUBIC).
Result<Image> resizeImage(const Image &image, std::uint32_t width, std::uint32_t height);

} // namespace moert

#endif
