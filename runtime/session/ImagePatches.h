// From an image to the patches that a model looks at.
#ifndef MOERT_SESSION_IMAGEPATCHES_H
#define MOERT_SESSION_IMAGEPATCHES_H

#include "runtime/bundle/Bundle.h"
#include "runtime/image/Image.h"

#include <cstdint>
#include <vector>

namespace moert {

// Normalised numbers, f32 [frames, rows, columns, 3, side, side]: red, green and blue of each
// patch's pixels.
struct ImagePatches {
  std::uint32_t frames = 1, rows = 0, columns = 0;
  std::vector<float> values;
};

// How large an image becomes before it is cut: `width` x `height` pixels, then black ones at the
// right and at the bottom up to `paddedWidth` x `paddedHeight`, whole embeddings.
struct FittedSize {
  std::uint32_t width, height, paddedWidth, paddedHeight;
};

// Images are never enlarged, and made smaller where the model's limits ask for it: the rule of
// transformers' processor for Kimi K2.5.
FittedSize fitImage(std::uint32_t width, std::uint32_t height, const moec::bundle::Vision &vision);

Result<ImagePatches> cutImage(const Image &image, const moec::bundle::Vision &vision);

} // namespace moert

#endif
