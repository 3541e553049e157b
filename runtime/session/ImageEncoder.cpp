#include "runtime/session/ImageEncoder.h"

#include "runtime/session/Program.h"
#include "runtime/session/Variant.h"

#include <algorithm>
#include <cstring>

namespace moert {

using moec::bundle::Vision;

const Vision *findVision(const Bundle &bundle) {
  const moec::bundle::Manifest &manifest = bundle.manifest();
  return manifest.has_language_model() && manifest.language_model().has_vision()
             ? &manifest.language_model().vision()
             : nullptr;
}

Result<const Vision *> requireVision(const Bundle &bundle) {
  if (const Vision *vision = findVision(bundle))
    return vision;
  return Status(ErrorCode::Unsupported, "the model takes no images", bundle.path(),
                "give it text only, or compile a model with a vision tower");
}

namespace {

// The inputs of the encoder's entry, as docs/bundle-format.md describes them: patches in the order
// of the embeddings that they become, each with its place.
class EncoderInputs {
public:
  EncoderInputs(const ImagePatches &patches, const Vision &vision, std::uint32_t blockTokens)
      : patches(patches), merge(vision.merge()),
        patchSize(std::size_t(3) * vision.patch() * vision.patch()),
        count(std::size_t(patches.frames) * patches.rows * patches.columns),
        blocks((count + blockTokens - 1) / blockTokens) {}

  std::map<std::string, Tensor> make() {
    std::int64_t embeddings = static_cast<std::int64_t>(count / patches.frames / merge / merge);
    std::vector<std::int64_t> shape = {embeddings, static_cast<std::int64_t>(merge) * merge,
                                       patches.frames};
    std::vector<std::int64_t> pixelShape = shape;
    pixelShape.push_back(static_cast<std::int64_t>(patchSize));
    Tensor pixels{ElementType::F32, pixelShape, {}};
    pixels.data.resize(count * patchSize * sizeof(float));
    std::vector<std::int32_t> rows(count), columns(count), times(count), keys(count);
    std::size_t at = 0;
    forEachPatch([&](std::uint32_t frame, std::uint32_t row, std::uint32_t column) {
      std::size_t source = (std::size_t(frame) * patches.rows + row) * patches.columns + column;
      std::memcpy(pixels.data.data() + at * patchSize * sizeof(float),
                  patches.values.data() + source * patchSize, patchSize * sizeof(float));
      rows[at] = static_cast<std::int32_t>(row);
      columns[at] = static_cast<std::int32_t>(column);
      times[at] = patches.frames == 1 ? 0 : static_cast<std::int32_t>(frame) + 1;
      keys[at] = static_cast<std::int32_t>(at);
      ++at;
    });
    auto same = [&](std::size_t value) {
      return std::vector<std::int32_t>(count, static_cast<std::int32_t>(value));
    };
    std::vector<std::int32_t> table(blocks);
    for (std::size_t i = 0; i < blocks; ++i)
      table[i] = static_cast<std::int32_t>(i);
    std::map<std::string, Tensor> inputs;
    inputs["patches"] = std::move(pixels);
    inputs["rows"] = integers(rows, shape);
    inputs["heights"] = integers(same(patches.rows), shape);
    inputs["columns"] = integers(columns, shape);
    inputs["widths"] = integers(same(patches.columns), shape);
    inputs["times"] = integers(times, shape);
    inputs["keys"] = integers(keys, shape);
    inputs["last_keys"] = integers(same(count - 1), shape);
    inputs["items"] = integers(same(0), shape);
    inputs["block_table"] = integers(table, {1, static_cast<std::int64_t>(blocks)});
    return inputs;
  }

private:
  template <typename Visit>
  void forEachPatch(Visit visit) {
    for (std::uint32_t top = 0; top < patches.rows; top += merge)
      for (std::uint32_t left = 0; left < patches.columns; left += merge)
        for (std::uint32_t y = 0; y < merge; ++y)
          for (std::uint32_t x = 0; x < merge; ++x)
            for (std::uint32_t frame = 0; frame < patches.frames; ++frame)
              visit(frame, top + y, left + x);
  }

  static Tensor integers(const std::vector<std::int32_t> &values, std::vector<std::int64_t> shape) {
    auto bytes = std::as_bytes(std::span(values));
    return {ElementType::I32, std::move(shape), {bytes.begin(), bytes.end()}};
  }

  const ImagePatches &patches;
  std::uint32_t merge;
  std::size_t patchSize, count, blocks;
};

Status checkPatches(const ImagePatches &patches, const Vision &vision) {
  Problems problems("the patches of an image");
  std::uint32_t merge = vision.merge();
  if (patches.frames < 1 || patches.frames > vision.frames())
    problems.add(std::to_string(patches.frames) + " frames; the model takes 1 to " +
                 std::to_string(vision.frames()));
  // Images are padded to whole embeddings.
  std::uint32_t most = (vision.most_patches_of_side() + merge - 1) / merge * merge;
  for (auto [name, size] : {std::pair("rows", patches.rows), std::pair("columns", patches.columns)})
    if (size < 1 || size % merge != 0 || size > most)
      problems.add(std::to_string(size) + " " + name + "; expected a multiple of " +
                   std::to_string(merge) + " up to " + std::to_string(most));
  // All are far below 2^32 now, or a problem: the product of three does not overflow 64 bits
  // where there is none.
  if (problems.empty()) {
    std::uint64_t count = std::uint64_t(patches.rows) * patches.columns * patches.frames;
    std::uint64_t numbers = count * 3 * vision.patch() * vision.patch();
    if (count > INT32_MAX || patches.values.size() != numbers)
      problems.add("expected " + std::to_string(numbers) + " numbers, found " +
                   std::to_string(patches.values.size()));
  }
  return problems.toStatus(ErrorCode::InvalidArgument);
}

} // namespace

Result<SharedImage> encodePatches(const Model &model, const ImagePatches &patches) {
  MOERT_ASSIGN_OR_RETURN(const Vision *vision, requireVision(model.bundle()));
  MOERT_RETURN_IF_ERROR(checkPatches(patches, *vision));
  // Validation saw the entry in every variant, with one cache.
  const CompiledProgram *program = model.loaded().entry(vision->entry());
  std::uint32_t blockTokens = program->source().states(0).block_tokens();
  MOERT_ASSIGN_OR_RETURN(
      auto outputs,
      model.run(vision->entry(), EncoderInputs(patches, *vision, blockTokens).make()));
  Tensor &embeddings = outputs.begin()->second;
  auto image = std::make_shared<ImageEmbeddings>();
  image->type = embeddings.type;
  image->tokens = static_cast<std::size_t>(embeddings.shape[0]);
  image->data = std::move(embeddings.data);
  return SharedImage(std::move(image));
}

Result<SharedImage> encodeImageFile(const Model &model, std::span<const std::byte> file,
                                    std::string_view location) {
  MOERT_ASSIGN_OR_RETURN(const Vision *vision, requireVision(model.bundle()));
  MOERT_ASSIGN_OR_RETURN(Image image, decodeImage(file, location));
  Result<ImagePatches> patches = cutImage(image, *vision);
  if (!patches.isOk())
    return std::move(patches).status().in(location);
  Result<SharedImage> encoded = encodePatches(model, *patches);
  if (!encoded.isOk())
    return std::move(encoded).status().in(location);
  return encoded;
}

Result<PromptWithImages> placeImages(std::span<const std::int32_t> prompt,
                                     std::span<const SharedImage> images, const Vision &vision) {
  auto placeholder = static_cast<std::int32_t>(vision.placeholder());
  auto count = static_cast<std::size_t>(std::count(prompt.begin(), prompt.end(), placeholder));
  if (count != images.size())
    return Status(ErrorCode::InvalidArgument,
                  "the prompt has " + std::to_string(count) + " placeholders for images (token " +
                      std::to_string(placeholder) + "), and " + std::to_string(images.size()) +
                      " images are given",
                  "the prompt", "each image takes the place of one placeholder, in order");
  PromptWithImages result;
  auto image = images.begin();
  for (std::int32_t token : prompt) {
    if (token != placeholder) {
      result.tokens.push_back(token);
      continue;
    }
    result.positions.push_back(result.tokens.size());
    result.tokens.insert(result.tokens.end(), (*image++)->tokens, placeholder);
  }
  return result;
}

} // namespace moert
