// The C interface: images.
#include "runtime/api/Handles.h"
#include "runtime/session/ImageEncoder.h"

using namespace moert;
using namespace moert::api;

static moert_error *giveImage(Result<SharedImage> encoded, moert_image **image) {
  MOERT_API_RETURN_IF_ERROR(toError(encoded.status()));
  *image = new moert_image{*std::move(encoded)};
  return nullptr;
}

moert_error *moert_image_encode_file(const moert_model *model, const void *file, size_t bytes,
                                     moert_image **image) {
  if (!model || (bytes && !file) || !image)
    return badArgument("moert_image_encode_file: an argument is NULL");
  return giveImage(
      encodeImageFile(*model->content, {static_cast<const std::byte *>(file), bytes}, "the image"),
      image);
}

moert_error *moert_image_encode_patches(const moert_model *model, const moert_patches *patches,
                                        moert_image **image) {
  moert_patches given = readOptions(patches);
  if (!model || !patches || (given.count && !given.data) || !image)
    return badArgument("moert_image_encode_patches: an argument is NULL");
  ImagePatches copy{
      given.frames, given.rows, given.columns, {given.data, given.data + given.count}};
  return giveImage(encodePatches(*model->content, copy), image);
}

size_t moert_image_tokens(const moert_image *image) { return image ? image->content->tokens : 0; }
void moert_image_free(moert_image *image) { delete image; }

moert_error *moert_sequence_place_image(moert_session *session, moert_sequence sequence,
                                        uint64_t position, const moert_image *image) {
  if (!session || !image)
    return badArgument("moert_sequence_place_image: an argument is NULL");
  return toError(session->content.placeImage({sequence}, position, image->content));
}
