// JPEG by libjpeg-turbo, through the interface of it that returns errors.
#include "runtime/image/ImageFormats.h"

#include <memory>

#include <turbojpeg.h>

namespace moert {

Result<Image> decodeJpeg(std::span<const std::byte> file, std::string_view location) {
  std::unique_ptr<void, int (*)(tjhandle)> handle(tjInitDecompress(), tjDestroy);
  if (!handle)
    return Status(ErrorCode::OutOfMemory, "no memory for reading a JPEG file",
                  std::string(location));
  auto damaged = [&] {
    return Status(ErrorCode::InvalidData,
                  "a damaged JPEG file: " + std::string(tjGetErrorStr2(handle.get())),
                  std::string(location), "save the image again with another program");
  };
  auto data = reinterpret_cast<const unsigned char *>(file.data());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (tjDecompressHeader3(handle.get(), data, file.size(), &width, &height, &subsampling,
                          &colours) != 0 ||
      width < 0 || height < 0)
    return damaged();
  if (colours == TJCS_CMYK || colours == TJCS_YCCK)
    return Status(ErrorCode::Unsupported, "a JPEG file in CMYK, the colours of printers",
                  std::string(location), "convert it to RGB");
  MOERT_ASSIGN_OR_RETURN(Image image, allocateImage(static_cast<std::uint64_t>(width),
                                                    static_cast<std::uint64_t>(height), location));
  // A file that is cut off only gets a warning, and grey where its end is missing. Very many scans
  // over few bytes would take minutes.
  constexpr int flags = TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS | TJFLAG_ACCURATEDCT;
  if (tjDecompress2(handle.get(), data, file.size(), image.pixels.data(), width, 0, height,
                    TJPF_RGB, flags) != 0)
    return damaged();
  return orient(std::move(image), readJpegOrientation(file));
}

} // namespace moert
