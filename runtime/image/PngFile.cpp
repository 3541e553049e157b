// PNG by libpng. It reports errors by a long jump, over frames that hold nothing that would have to
// be destroyed: all that lives longer is in Reader.
#include "runtime/image/ImageFormats.h"

#include <csetjmp>
#include <cstring>

#include <png.h>

namespace moert {

namespace {

// Chunks of text and profiles are of no use here; those that are compressed may be bombs.
constexpr png_alloc_size_t mostChunkBytes = 8 << 20;
constexpr png_uint_32 mostChunks = 1000;

class Reader {
public:
  Reader(std::span<const std::byte> file, std::string_view location)
      : file(file), location(location) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, fail, warn);
    info = png ? png_create_info_struct(png) : nullptr;
  }
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader &) = delete;

  Result<Image> read() {
    if (!info)
      return Status(ErrorCode::OutOfMemory, "no memory for reading a PNG file", place());
    if (!readHeader())
      return damaged();
    if (png_get_image_width(png, info) > mostSide || png_get_image_height(png, info) > mostSide)
      return Status(ErrorCode::InvalidArgument,
                    "an image with a side of more than " + std::to_string(mostSide) + " pixels",
                    place(), "make the image smaller");
    MOERT_ASSIGN_OR_RETURN(image, allocateImage(png_get_image_width(png, info),
                                                png_get_image_height(png, info), location));
    rows.resize(image.height);
    for (std::size_t y = 0; y < rows.size(); ++y)
      rows[y] = image.pixels.data() + 3 * y * image.width;
    if (!readPixels())
      return damaged();
    int orientation = 1;
    png_bytep exif = nullptr;
    png_uint_32 bytes = 0;
    if (png_get_eXIf_1(png, info, &bytes, &exif) != 0)
      orientation = readOrientation({reinterpret_cast<const std::byte *>(exif), bytes});
    return orient(std::move(image), orientation);
  }

private:
  static constexpr png_uint_32 mostSide = 1'000'000; // libpng's own limit

  std::string place() const { return std::string(location); }
  Status damaged() const {
    return {ErrorCode::InvalidData, std::string("a damaged PNG file: ") + message, place(),
            "save the image again with another program"};
  }

  bool readHeader() {
    if (setjmp(png_jmpbuf(png)) != 0)
      return false;
    png_set_read_fn(png, this, take);
    png_set_chunk_malloc_max(png, mostChunkBytes);
    png_set_chunk_cache_max(png, mostChunks);
    png_read_info(png, info);
    return true;
  }

  bool readPixels() {
    if (setjmp(png_jmpbuf(png)) != 0)
      return false;
    png_set_expand(png); // palettes, fewer than 8 bits, transparent colours
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != std::size_t(3) * image.width)
      png_error(png, "its rows are no three bytes a pixel");
    png_read_image(png, rows.data());
    png_read_end(png, info);
    return true;
  }

  static void take(png_structp png, png_bytep bytes, std::size_t count) {
    auto reader = static_cast<Reader *>(png_get_io_ptr(png));
    if (count > reader->file.size() - reader->done)
      png_error(png, "it is cut off");
    std::memcpy(bytes, reader->file.data() + reader->done, count);
    reader->done += count;
  }
  static void fail(png_structp png, png_const_charp text) {
    auto reader = static_cast<Reader *>(png_get_error_ptr(png));
    std::strncpy(reader->message, text, sizeof reader->message - 1);
    png_longjmp(png, 1);
  }
  static void warn(png_structp, png_const_charp) {}

  std::span<const std::byte> file;
  std::string_view location;
  std::size_t done = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  Image image;
  std::vector<png_bytep> rows;
  char message[200] = "";
};

} // namespace

Result<Image> decodePng(std::span<const std::byte> file, std::string_view location) {
  return Reader(file, location).read();
}

} // namespace moert
