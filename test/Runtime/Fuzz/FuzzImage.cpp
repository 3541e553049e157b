#include "runtime/image/Image.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  auto image = moert::decodeImage({reinterpret_cast<const std::byte *>(data), size}, "input");
  if (image.isOk() && image->width < 1000 && image->height < 1000)
    (void)moert::resizeImage(*image, 5, 7);
  return 0;
}
