// Images: the fixtures are what scripts/images/make_fixtures.py wrote with Pillow.
#include "runtime/image/ImageFormats.h"
#include "runtime/session/ImageEncoder.h"
#include "test/Runtime/Support.h"

#include <random>

namespace moert::test {
namespace {

const std::string folder = MOERT_TEST_IMAGES;

std::span<const std::byte> bytesOf(const std::string &content) {
  return std::as_bytes(std::span(content));
}

Result<Image> decodeFixture(const std::string &name) {
  std::string content = readFile(folder + "/" + name);
  return decodeImage(bytesOf(content), name);
}

// How far the pixels are from the expected ones at most; -1: another size.
int distance(const Image &image, const std::string &expected) {
  std::string wanted = readFile(folder + "/" + expected + ".rgb");
  if (wanted.size() != image.pixels.size())
    return -1;
  int most = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    most = std::max(most, std::abs(image.pixels[i] - static_cast<unsigned char>(wanted[i])));
  return most;
}

void expectPixels(const std::string &name, const std::string &kind, std::uint32_t width,
                  std::uint32_t height) {
  SCOPED_TRACE(name);
  Result<Image> image = decodeFixture(name + "." + kind);
  ASSERT_TRUE(isOk(image));
  EXPECT_EQ(image->width, width);
  EXPECT_EQ(image->height, height);
  EXPECT_EQ(distance(*image, name), 0);
}

TEST(ImageTest, PngOfEveryKindIsWhatPillowReads) {
  for (const char *name : {"rgb", "rgba", "grey", "bits", "palette", "transparent", "wide"})
    expectPixels(name, "png", 37, 29);
}

TEST(ImageTest, JpegIsWhatPillowReads) {
  for (const char *name : {"grey_jpg", "halves", "progressive"})
    expectPixels(name, "jpg", 37, 29);
}

TEST(ImageTest, OrientationIsFollowed) {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    bool isTransposed = orientation >= 5;
    expectPixels("turned_" + std::to_string(orientation), "jpg", isTransposed ? 8 : 16,
                 isTransposed ? 16 : 8);
  }
  expectPixels("turned", "png", 5, 7);
}

TEST(ImageTest, OrientationOfDamagedExifIsIgnored) {
  std::string tiff("MM\0*\0\0\0\x8\0\x1\x1\x12\0\x3\0\0\0\x1\0\x6\0\0", 22);
  EXPECT_EQ(readOrientation(bytesOf(tiff)), 6);
  for (std::size_t size = 0; size < 20; ++size) {
    std::string cut = tiff.substr(0, size);
    EXPECT_EQ(readOrientation(bytesOf(cut)), 1) << size;
  }
  std::string far = tiff;
  far.replace(4, 4, "\xff\xff\xff\xf0");
  EXPECT_EQ(readOrientation(bytesOf(far)), 1);
  std::string nine = tiff;
  nine[19] = 9;
  EXPECT_EQ(readOrientation(bytesOf(nine)), 1);
}

TEST(ImageTest, ResizesAsPillow) {
  Result<Image> image = decodeFixture("rgb.png");
  ASSERT_TRUE(isOk(image));
  for (auto [width, height] : {std::pair(19u, 11u), {64u, 50u}, {37u, 10u}, {5u, 29u}, {1u, 1u}}) {
    Result<Image> resized = resizeImage(*image, width, height);
    ASSERT_TRUE(isOk(resized));
    EXPECT_EQ(distance(*resized, "resized." + std::to_string(width) + "." + std::to_string(height)),
              0)
        << width << " x " << height;
  }
  Result<Image> same = resizeImage(*image, 37, 29);
  ASSERT_TRUE(isOk(same));
  EXPECT_EQ(distance(*same, "rgb"), 0);
  EXPECT_TRUE(fails(resizeImage(*image, 0, 5), ErrorCode::InvalidArgument, "cannot be resized"));
  EXPECT_TRUE(fails(resizeImage(*image, 1u << 31, 1u << 31), ErrorCode::InvalidArgument,
                    "cannot be resized"));
}

TEST(ImageTest, RefusesWhatItDoesNotRead) {
  EXPECT_TRUE(fails(decodeFixture("cmyk.jpg"), ErrorCode::Unsupported, "in CMYK"));
  EXPECT_TRUE(fails(decodeFixture("rgb.rgb"), ErrorCode::InvalidData, "a JPEG or PNG file"));
  EXPECT_TRUE(fails(decodeImage({}, "nothing"), ErrorCode::InvalidData, "a JPEG or PNG file"));
}

// Sizes in headers are refused before memory is taken for them.
TEST(ImageTest, RefusesHostileSizes) {
  std::string jpeg = readFile(folder + "/halves.jpg");
  std::size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xf0\xf0\xf0\xf0"); // height and width
  EXPECT_TRUE(fails(decodeImage(bytesOf(jpeg), "jpeg"), ErrorCode::InvalidArgument,
                    "an image of 61680 x 61680 pixels; at most 178956970"));
  // A header of PNG with the right checksum, up to the pixels: 900,000 x 800,000, and 2^31 - 1 a
  // side.
  std::string start("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  std::string large = start + std::string("\0\x0d\xbb\xa0\0\x0c\x35\0\x8\x2\0\0\0", 13) +
                      std::string("\x52\x40\x86\x07\0\0\0\x5IDAT", 12);
  EXPECT_TRUE(fails(decodeImage(bytesOf(large), "png"), ErrorCode::InvalidArgument,
                    "an image of 900000 x 800000 pixels; at most 178956970"));
  std::string huge = start + std::string("\x7f\xff\xff\xff\x7f\xff\xff\xff\x8\x2\0\0\0", 13) +
                     std::string("\x9b\xab\x9c\x31\0\0\0\x5IDAT", 12);
  EXPECT_TRUE(
      fails(decodeImage(bytesOf(huge), "png"), ErrorCode::InvalidData, "Invalid IHDR data"));
  EXPECT_TRUE(fails(allocateImage(0, 7, "x"), ErrorCode::InvalidData, "no pixels"));
  EXPECT_TRUE(fails(allocateImage(20'000, 20'000, "x"), ErrorCode::InvalidArgument, "at most"));
}

TEST(ImageTest, FilesThatAreCutOffAreErrors) {
  for (const char *name :
       {"rgb.png", "palette.png", "turned.png", "halves.jpg", "progressive.jpg", "turned_6.jpg"}) {
    std::string content = readFile(folder + "/" + name);
    // The last bytes only end a file.
    for (std::size_t size = 0; size + 20 < content.size(); ++size) {
      std::string cut = content.substr(0, size);
      EXPECT_FALSE(decodeImage(bytesOf(cut), name).isOk()) << name << ", " << size << " bytes";
    }
  }
}

TEST(ImageTest, DamagedFilesAreErrorsOrImages) {
  std::mt19937 random(7);
  for (const char *name : {"rgb.png", "palette.png", "wide.png", "turned.png", "halves.jpg",
                           "progressive.jpg", "grey_jpg.jpg", "turned_6.jpg", "cmyk.jpg"}) {
    std::string content = readFile(folder + "/" + name);
    for (int round = 0; round < 300; ++round) {
      std::string damaged = content;
      for (int i = 0; i < 1 + round % 4; ++i)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      Result<Image> image = decodeImage(bytesOf(damaged), name);
      if (image.isOk()) {
        EXPECT_EQ(image->pixels.size(), std::size_t(3) * image->width * image->height);
      }
    }
  }
}

moec::bundle::Vision makeVision(std::uint32_t mostPatches) {
  moec::bundle::Vision vision;
  vision.set_patch(14);
  vision.set_merge(2);
  vision.set_frames(4);
  vision.set_placeholder(9);
  vision.set_most_patches(mostPatches);
  vision.set_most_patches_of_side(512);
  for (double mean : {0.25, 0.5, 0.75})
    vision.add_mean(mean);
  for (double deviation : {0.5, 0.25, 1.0})
    vision.add_deviation(deviation);
  return vision;
}

// The sizes are those of navit_resize in transformers 5.24.
TEST(ImagePatchesTest, SizesAreThoseOfTransformers) {
  struct Case {
    std::uint32_t width, height, mostPatches;
    FittedSize fitted;
  };
  for (const Case &each : {Case{1, 1, 65536, {1, 1, 28, 28}},
                           {27, 29, 65536, {27, 29, 28, 56}},
                           {640, 480, 65536, {640, 480, 644, 504}},
                           {4000, 3000, 65536, {4000, 3000, 4004, 3024}},
                           {4000, 3000, 16384, {2073, 1554, 2100, 1568}},
                           {8000, 100, 65536, {7168, 89, 7168, 112}},
                           {1, 100000, 65536, {1, 7167, 28, 7168}},
                           {10000, 9999, 65536, {3585, 3585, 3612, 3612}},
                           {3584, 3585, 16384, {1792, 1792, 1792, 1792}}}) {
    FittedSize found = fitImage(each.width, each.height, makeVision(each.mostPatches));
    EXPECT_EQ(found.width, each.fitted.width) << each.width;
    EXPECT_EQ(found.height, each.fitted.height) << each.width;
    EXPECT_EQ(found.paddedWidth, each.fitted.paddedWidth) << each.width;
    EXPECT_EQ(found.paddedHeight, each.fitted.paddedHeight) << each.width;
  }
}

TEST(ImagePatchesTest, PatchesAreNormalisedAndPadded) {
  Image image{15, 30, {}};
  for (std::size_t i = 0; i < std::size_t(3) * 15 * 30; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(i * 7));
  moec::bundle::Vision vision = makeVision(65536);
  Result<ImagePatches> patches = cutImage(image, vision);
  ASSERT_TRUE(isOk(patches));
  EXPECT_EQ(patches->rows, 4u);
  EXPECT_EQ(patches->columns, 2u);
  ASSERT_EQ(patches->values.size(), std::size_t(8) * 3 * 14 * 14);
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t column = 0; column < 2; ++column)
      for (std::size_t colour = 0; colour < 3; ++colour)
        for (std::size_t y = 0; y < 14; ++y)
          for (std::size_t x = 0; x < 14; ++x) {
            std::size_t atY = row * 14 + y, atX = column * 14 + x;
            double value =
                atX < 15 && atY < 30 ? image.pixels[3 * (atY * 15 + atX) + colour] / 255.0 : 0;
            double mean[] = {0.25, 0.5, 0.75}, deviation[] = {0.5, 0.25, 1.0};
            ASSERT_FLOAT_EQ(patches->values[(((row * 2 + column) * 3 + colour) * 14 + y) * 14 + x],
                            static_cast<float>((value - mean[colour]) / deviation[colour]));
          }
}

TEST(ImagePatchesTest, PlaceholdersBecomeAsManyTokensAsImagesHave) {
  auto makeImage = [](std::size_t tokens) {
    auto image = std::make_shared<ImageEmbeddings>();
    image->tokens = tokens;
    return SharedImage(image);
  };
  std::vector<SharedImage> images = {makeImage(3), makeImage(1)};
  std::vector<std::int32_t> prompt = {1, 9, 9, 2};
  moec::bundle::Vision vision = makeVision(65536);
  Result<PromptWithImages> placed = placeImages(prompt, images, vision);
  ASSERT_TRUE(isOk(placed));
  EXPECT_EQ(placed->tokens, (std::vector<std::int32_t>{1, 9, 9, 9, 9, 2}));
  EXPECT_EQ(placed->positions, (std::vector<std::uint64_t>{1, 4}));
  prompt.pop_back();
  prompt.pop_back();
  EXPECT_TRUE(fails(placeImages(prompt, images, vision), ErrorCode::InvalidArgument,
                    "the prompt has 1 placeholders for images (token 9), and 2 images are given"));
}

} // namespace
} // namespace moert::test
