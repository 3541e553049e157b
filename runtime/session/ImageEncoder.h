// What a model sees in an image: embeddings that take the places of tokens'.
#ifndef MOERT_SESSION_IMAGEENCODER_H
#define MOERT_SESSION_IMAGEENCODER_H

#include "runtime/session/ImagePatches.h"
#include "runtime/session/Model.h"

#include <memory>
#include <string_view>

namespace moert {

// One row a token. Immutable; any number of sequences may use it.
struct ImageEmbeddings {
  ElementType type = ElementType::Unspecified;
  std::size_t tokens = 0;
  std::vector<std::byte> data; // [tokens, features of the model]
};
using SharedImage = std::shared_ptr<const ImageEmbeddings>;

// The part of the bundle for images; null: it has none.
const moec::bundle::Vision *findVision(const Bundle &bundle);
// The same, or an error that says that there is none.
Result<const moec::bundle::Vision *> requireVision(const Bundle &bundle);

// Runs the model's encoder on the device and brings the embeddings to the host.
Result<SharedImage> encodePatches(const Model &model, const ImagePatches &patches);
// The same, of a JPEG or PNG file. `location` names it in messages.
Result<SharedImage> encodeImageFile(const Model &model, std::span<const std::byte> file,
                                    std::string_view location);

// A prompt in which each image has as many tokens as embeddings.
struct PromptWithImages {
  std::vector<std::int32_t> tokens;
  std::vector<std::uint64_t> positions; // where each image begins
};
// Repeats the placeholders of `prompt`, one an image, in order. As many images as placeholders.
Result<PromptWithImages> placeImages(std::span<const std::int32_t> prompt,
                                     std::span<const SharedImage> images,
                                     const moec::bundle::Vision &vision);

} // namespace moert

#endif
