// The orientation in EXIF: the one field of it that changes how an image looks.
#include "runtime/image/ImageFormats.h"

#include <algorithm>
#include <optional>

namespace moert {

namespace {

constexpr int upright = 1;

// Numbers of a file in its byte order, within its bounds.
class Bytes {
public:
  Bytes(std::span<const std::byte> bytes, bool bigEndian) : bytes(bytes), bigEndian(bigEndian) {}

  std::optional<std::uint32_t> read(std::size_t offset, std::size_t count) const {
    if (offset > bytes.size() || count > bytes.size() - offset)
      return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
      value =
          value << 8 | static_cast<std::uint32_t>(bytes[offset + (bigEndian ? i : count - 1 - i)]);
    return value;
  }

private:
  std::span<const std::byte> bytes;
  bool bigEndian;
};

} // namespace

int readOrientation(std::span<const std::byte> tiff) {
  constexpr std::uint32_t orientationTag = 0x0112, shortType = 3;
  constexpr std::size_t entryBytes = 12;
  if (tiff.size() < 8 || tiff[0] != tiff[1] ||
      (tiff[0] != std::byte('I') && tiff[0] != std::byte('M')))
    return upright;
  Bytes bytes(tiff, tiff[0] == std::byte('M'));
  if (bytes.read(2, 2) != 42u)
    return upright;
  std::size_t directory = bytes.read(4, 4).value_or(0);
  std::uint32_t entries = bytes.read(directory, 2).value_or(0);
  for (std::uint32_t i = 0; i < entries; ++i) {
    std::size_t entry = directory + 2 + i * entryBytes;
    auto tag = bytes.read(entry, 2);
    if (!tag)
      return upright;
    if (tag != orientationTag)
      continue;
    auto value = bytes.read(entry + 8, 2);
    bool isKnown = bytes.read(entry + 2, 2) == shortType && bytes.read(entry + 4, 4) == 1u;
    return isKnown && value && *value >= 1 && *value <= 8 ? static_cast<int>(*value) : upright;
  }
  return upright;
}

int readJpegOrientation(std::span<const std::byte> file) {
  constexpr std::uint32_t startOfScan = 0xda, application1 = 0xe1;
  constexpr std::string_view signature("Exif\0\0", 6);
  Bytes bytes(file, /*bigEndian=*/true);
  // Segments of a marker and a length that counts itself, up to the first scan.
  for (std::size_t at = 2;;) {
    auto prefix = bytes.read(at, 1), marker = bytes.read(at + 1, 1), length = bytes.read(at + 2, 2);
    if (!length || prefix != 0xffu || marker == startOfScan || *length < 2)
      return upright;
    std::size_t begin = at + 4, end = at + 2 + *length;
    if (end > file.size())
      return upright;
    std::span<const std::byte> content = file.subspan(begin, end - begin);
    if (marker == application1 && content.size() >= signature.size() &&
        std::equal(signature.begin(), signature.end(), content.begin(),
                   [](char a, std::byte b) { return std::byte(a) == b; }))
      return readOrientation(content.subspan(signature.size()));
    at = end;
  }
}

} // namespace moert
