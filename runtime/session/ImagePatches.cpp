#include "runtime/session/ImagePatches.h"

#include <algorithm>
#include <cmath>

namespace moert {

FittedSize fitImage(std::uint32_t width, std::uint32_t height, const moec::bundle::Vision &vision) {
  std::uint32_t side = vision.patch(), longest = vision.most_patches_of_side() * side;
  double patches = std::max(1.0, static_cast<double>(width / side)) *
                   std::max(1.0, static_cast<double>(height / side));
  double scale =
      std::min({1.0, std::sqrt(vision.most_patches() / patches),
                static_cast<double>(longest) / width, static_cast<double>(longest) / height});
  auto fit = [&](std::uint32_t size) {
    return std::clamp(static_cast<std::uint32_t>(size * scale), 1u, longest);
  };
  std::uint32_t unit = side * vision.merge();
  auto pad = [&](std::uint32_t size) { return (size + unit - 1) / unit * unit; };
  FittedSize fitted{fit(width), fit(height), 0, 0};
  fitted.paddedWidth = pad(fitted.width);
  fitted.paddedHeight = pad(fitted.height);
  return fitted;
}

Result<ImagePatches> cutImage(const Image &image, const moec::bundle::Vision &vision) {
  FittedSize fitted = fitImage(image.width, image.height, vision);
  MOERT_ASSIGN_OR_RETURN(Image resized, resizeImage(image, fitted.width, fitted.height));
  std::size_t side = vision.patch();
  ImagePatches patches;
  patches.rows = fitted.paddedHeight / vision.patch();
  patches.columns = fitted.paddedWidth / vision.patch();
  patches.values.resize(std::size_t(3) * fitted.paddedWidth * fitted.paddedHeight);
  float *to = patches.values.data();
  for (std::size_t row = 0; row < patches.rows; ++row)
    for (std::size_t column = 0; column < patches.columns; ++column)
      for (std::size_t colour = 0; colour < 3; ++colour) {
        double mean = vision.mean(static_cast<int>(colour)),
               deviation = vision.deviation(static_cast<int>(colour));
        for (std::size_t y = row * side; y < (row + 1) * side; ++y)
          for (std::size_t x = column * side; x < (column + 1) * side; ++x) {
            bool isInside = x < resized.width && y < resized.height;
            int value = isInside ? resized.pixels[3 * (y * resized.width + x) + colour] : 0;
            *to++ = static_cast<float>((value / 255.0 - mean) / deviation);
          }
      }
  return patches;
}

} // namespace moert
