#include "runtime/image/ImageFormats.h"

#include <algorithm>
#include <array>

namespace moert {

Result<Image> allocateImage(std::uint64_t width, std::uint64_t height, std::string_view location) {
  if (width == 0 || height == 0)
    return Status(ErrorCode::InvalidData, "an image of no pixels", std::string(location));
  // Sides of formats have at most 32 bits: the product does not overflow.
  if (width * height > mostImagePixels)
    return Status(ErrorCode::InvalidArgument,
                  "an image of " + std::to_string(width) + " x " + std::to_string(height) +
                      " pixels; at most " + std::to_string(mostImagePixels) + " are read",
                  std::string(location), "make the image smaller");
  Image image{static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), {}};
  image.pixels.resize(3 * width * height);
  return image;
}

Result<Image> decodeImage(std::span<const std::byte> file, std::string_view location) {
  auto begins = [&](std::initializer_list<unsigned char> magic) {
    return file.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), file.begin(),
                      [](unsigned char a, std::byte b) { return std::byte(a) == b; });
  };
  if (begins({0xff, 0xd8, 0xff}))
    return decodeJpeg(file, location);
  if (begins({0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}))
    return decodePng(file, location);
  return Status(ErrorCode::InvalidData, "expected an image, a JPEG or PNG file",
                std::string(location), "convert the image to one of the two");
}

Image orient(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8)
    return image;
  // What each orientation does to a place (x, y) of the upright image, to find it in the file's:
  // the sides are exchanged first, then x and y count from the other end.
  bool isTransposed = orientation >= 5;
  bool flipsX = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  bool flipsY = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image result{
      isTransposed ? image.height : image.width, isTransposed ? image.width : image.height, {}};
  result.pixels.resize(image.pixels.size());
  std::uint8_t *to = result.pixels.data();
  for (std::uint32_t y = 0; y < result.height; ++y)
    for (std::uint32_t x = 0; x < result.width; ++x) {
      std::uint32_t fromX = isTransposed ? y : x, fromY = isTransposed ? x : y;
      if (flipsX)
        fromX = image.width - 1 - fromX;
      if (flipsY)
        fromY = image.height - 1 - fromY;
      const std::uint8_t *from =
          image.pixels.data() + 3 * (std::size_t(fromY) * image.width + fromX);
      to = std::copy_n(from, 3, to);
    }
  return result;
}

} // namespace moert
