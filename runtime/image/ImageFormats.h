// The formats behind decodeImage. Private to this folder.
#ifndef MOERT_IMAGE_IMAGEFORMATS_H
#define MOERT_IMAGE_IMAGEFORMATS_H

#include "runtime/image/Image.h"

#include <string>

namespace moert {

// Checks the size and makes room.
Result<Image> allocateImage(std::uint64_t width, std::uint64_t height, std::string_view location);

Result<Image> decodeJpeg(std::span<const std::byte> file, std::string_view location);
Result<Image> decodePng(std::span<const std::byte> file, std::string_view location);

// How EXIF says that an image has to be turned, 1 to 8; 1, as it is, where it says nothing that can
// be understood. `tiff` is the content behind "Exif\0\0".
int readOrientation(std::span<const std::byte> tiff);
// The same, of a JPEG file.
int readJpegOrientation(std::span<const std::byte> file);
Image orient(Image image, int orientation);

} // namespace moert

#endif
