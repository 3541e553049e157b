// Bicubic resizing with the numbers of Pillow, which models were trained with: libraries for C++
// treat the edges differently, and round once where Pillow rounds to bytes after each direction.
#include "runtime/image/Image.h"

#include <algorithm>
#include <cmath>

namespace moert {

namespace {

constexpr double cubicParameter = -0.5; // Catmull-Rom
constexpr double cubicReach = 2;
// Weights are integers: 1 is 2^22, so that sums of products with bytes fit 32 bits.
constexpr int weightBits = 22;

double cubic(double x) {
  constexpr double a = cubicParameter;
  x = std::abs(x);
  if (x < 1)
    return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2)
    return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

// Which pixels of the old side, with which weights, make a pixel of the new side.
struct Window {
  std::uint32_t first = 0;
  std::vector<std::int32_t> weights;
};

std::vector<Window> makeWindows(std::uint32_t from, std::uint32_t to) {
  double scale = static_cast<double>(from) / to;
  double stretch = std::max(scale, 1.0); // smaller images average over more pixels
  double reach = cubicReach * stretch;
  std::vector<Window> windows(to);
  std::vector<double> weights;
  for (std::uint32_t i = 0; i < to; ++i) {
    double centre = (i + 0.5) * scale;
    auto first = static_cast<std::int64_t>(std::max(centre - reach + 0.5, 0.0));
    auto end = static_cast<std::int64_t>(std::min<double>(centre + reach + 0.5, from));
    weights.clear();
    double sum = 0;
    for (std::int64_t j = first; j < end; ++j) {
      weights.push_back(cubic((static_cast<double>(j) - centre + 0.5) / stretch));
      sum += weights.back();
    }
    windows[i].first = static_cast<std::uint32_t>(first);
    for (double weight : weights)
      windows[i].weights.push_back(static_cast<std::int32_t>(
          std::round((sum != 0 ? weight / sum : weight) * (1 << weightBits))));
  }
  return windows;
}

std::uint8_t toByte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> weightBits, 0, 255));
}

// A pixel from those `stride` bytes apart.
void blend(const Window &window, const std::uint8_t *from, std::size_t stride, std::uint8_t *to) {
  std::int32_t sums[3];
  std::fill_n(sums, 3, 1 << (weightBits - 1));
  from += window.first * stride;
  for (std::int32_t weight : window.weights) {
    for (int c = 0; c < 3; ++c)
      sums[c] += weight * from[c];
    from += stride;
  }
  for (int c = 0; c < 3; ++c)
    to[c] = toByte(sums[c]);
}

Image resizeRows(const Image &image, std::uint32_t width) {
  std::vector<Window> windows = makeWindows(image.width, width);
  Image result{width, image.height, {}};
  result.pixels.resize(std::size_t(3) * width * image.height);
  std::uint8_t *to = result.pixels.data();
  for (std::size_t y = 0; y < image.height; ++y)
    for (std::uint32_t x = 0; x < width; ++x, to += 3)
      blend(windows[x], image.pixels.data() + 3 * y * image.width, 3, to);
  return result;
}

Image resizeColumns(const Image &image, std::uint32_t height) {
  std::vector<Window> windows = makeWindows(image.height, height);
  Image result{image.width, height, {}};
  result.pixels.resize(std::size_t(3) * image.width * height);
  std::uint8_t *to = result.pixels.data();
  for (std::uint32_t y = 0; y < height; ++y)
    for (std::size_t x = 0; x < image.width; ++x, to += 3)
      blend(windows[y], image.pixels.data() + 3 * x, std::size_t(3) * image.width, to);
  return result;
}

} // namespace

Result<Image> resizeImage(const Image &image, std::uint32_t width, std::uint32_t height) {
  if (width == 0 || height == 0 || image.width == 0 || image.height == 0 ||
      std::uint64_t(width) * height > mostImagePixels ||
      std::uint64_t(width) * image.height > mostImagePixels)
    return Status(ErrorCode::InvalidArgument,
                  "an image of " + std::to_string(image.width) + " x " +
                      std::to_string(image.height) + " pixels cannot be resized to " +
                      std::to_string(width) + " x " + std::to_string(height));
  if (width == image.width)
    return height == image.height ? image : resizeColumns(image, height);
  Image result = resizeRows(image, width);
  return height == image.height ? std::move(result) : resizeColumns(result, height);
}

} // namespace moert
