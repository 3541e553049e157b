// Packing and unpacking are inverse, and the bytes lie where the layout's description says.

#include "moec/Dialect/MoE/Reference/Layout.h"

#include "test/Unit/Reference/TestModules.h"

#include "mlir/IR/Builders.h"

#include <gtest/gtest.h>

#include <random>

using namespace mlir;
using namespace mlir::moec::moe;

namespace {
class LayoutTest : public ::testing::Test {
protected:
  ReferenceTensor makeNumbered(Type elementType, ArrayRef<int64_t> shape) {
    std::vector<double> values(*countElements(shape));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(i + 1);
    return *ReferenceTensor::createFrom(elementType, shape, ArrayRef<double>(values));
  }

  LayoutAttr makeLayout(ArrayRef<int64_t> tile, ArrayRef<int64_t> order, Swizzle swizzle) {
    return LayoutAttr::get(test.get(), tile, order, swizzle);
  }

  ReferenceBlockTensor makeRandomBlocks(ArrayRef<int64_t> shape) {
    std::mt19937 random(7);
    ReferenceBytes codes(*countElements(shape) / 2), scales(*countElements(shape) / 32);
    for (std::byte &byte : codes)
      byte = std::byte{static_cast<uint8_t>(random())};
    for (std::byte &byte : scales)
      byte = std::byte{static_cast<uint8_t>(random())};
    ReferenceBlockTensor blocks;
    blocks.shape.assign(shape.begin(), shape.end());
    blocks.codes = std::make_shared<const ReferenceBytes>(std::move(codes));
    blocks.scales = std::make_shared<const ReferenceBytes>(std::move(scales));
    return blocks;
  }

  TestContext test;
  Builder builder{test.get()};
  std::string problem;
};
} // namespace

TEST_F(LayoutTest, TensorsReadBack) {
  for (const SmallVector<int64_t> &shape :
       {SmallVector<int64_t>{33, 7}, {16, 32}, {1, 1}, {3, 17, 5}, {0, 4}})
    for (LayoutAttr layout :
         {makeLayout({16, 1}, {1, 0}, Swizzle::none), makeLayout({4, 8}, {0, 1}, Swizzle::none),
          makeLayout({4, 8}, {1, 0}, Swizzle::none), makeLayout({16, 2}, {0, 1}, Swizzle::pairs),
          makeLayout({4, 8}, {0, 1}, Swizzle::pairs), makeLayout({5}, {0}, Swizzle::none)}) {
      auto type = RankedTensorType::get(shape, builder.getF32Type(), layout);
      ReferenceTensor tensor = makeNumbered(builder.getF32Type(), shape);
      FailureOr<ReferenceTensor> buffer = packLayout(tensor, type, problem);
      ASSERT_TRUE(succeeded(buffer)) << problem;
      EXPECT_EQ(buffer->getShape(), getStorageType(type).getShape());
      // Every number once, the rest zero.
      double sum = 0;
      for (int64_t i = 0; i < buffer->getSize(); ++i)
        sum += buffer->getReal(i);
      double count = static_cast<double>(tensor.getSize());
      EXPECT_EQ(sum, count * (count + 1) / 2);
      FailureOr<ReferenceValue> back = unpackLayout(*buffer, type, shape, problem);
      ASSERT_TRUE(succeeded(back)) << problem;
      EXPECT_EQ(back->getTensor().getBytes(), tensor.getBytes());
    }
}

TEST_F(LayoutTest, PanelRowsAreOneVector) {
  auto type = RankedTensorType::get({20, 3}, builder.getF32Type(),
                                    makeLayout({16, 1}, {1, 0}, Swizzle::none));
  ReferenceTensor tensor = makeNumbered(builder.getF32Type(), {20, 3});
  ReferenceTensor buffer = *packLayout(tensor, type, problem);
  ASSERT_EQ(buffer.getShape(), ArrayRef<int64_t>({2, 3, 1, 16}));
  for (int64_t n = 0; n < 20; ++n)
    for (int64_t k = 0; k < 3; ++k)
      EXPECT_EQ(buffer.getReal(((n / 16) * 3 + k) * 16 + n % 16), tensor.getReal(n * 3 + k));
}

TEST_F(LayoutTest, PairsStayTogether) {
  auto type = RankedTensorType::get({16, 6}, builder.getBF16Type(),
                                    makeLayout({16, 6}, {0, 1}, Swizzle::pairs));
  ReferenceTensor tensor = makeNumbered(builder.getBF16Type(), {16, 6});
  ReferenceTensor buffer = *packLayout(tensor, type, problem);
  ASSERT_EQ(buffer.getShape(), ArrayRef<int64_t>({1, 1, 3, 16, 2}));
  for (int64_t n = 0; n < 16; ++n)
    for (int64_t k = 0; k < 6; ++k)
      EXPECT_EQ(buffer.getReal(((k / 2) * 16 + n) * 2 + k % 2), tensor.getReal(n * 6 + k));
}

TEST_F(LayoutTest, NibblePanelsLieAsDescribed) {
  LayoutAttr layout = makeLayout({16, 32}, {0, 1}, Swizzle::nibble_words);
  // 18 rows: the second panel is mostly padding.
  auto type = BlockTensorType::get(test.get(), {2, 18, 64}, BlockFormat::mxfp4, layout);
  ReferenceBlockTensor blocks = makeRandomBlocks({2, 18, 64});
  ReferenceTensor buffer = *packLayout(blocks, type, problem);
  ASSERT_EQ(buffer.getShape(), ArrayRef<int64_t>({2, 2, 2, 272}));
  auto byteAt = [&](int64_t e, int64_t n, int64_t k, int64_t offset) {
    int64_t panel = (e * 2 + n / 16) * 2 + k / 32;
    return static_cast<unsigned>(buffer.getBytes()[panel * 272 + offset]);
  };
  for (int64_t e = 0; e < 2; ++e)
    for (int64_t n = 0; n < 18; ++n)
      for (int64_t k = 0; k < 64; ++k) {
        int64_t element = (e * 18 + n) * 64 + k;
        auto pair = static_cast<unsigned>((*blocks.codes)[element / 2]);
        unsigned code = k % 2 ? pair >> 4 : pair & 15;
        // "Word 2 n + h of vector j carries in its nibbles i = 0..3 the codes of column 8 j + 2 i +
        // h of row n."
        int64_t column = k % 32, j = column / 8, i = column % 8 / 2, h = column % 2;
        int64_t word = j * 32 + 2 * (n % 16) + h;
        unsigned bits = byteAt(e, n, k, 2 * word) | byteAt(e, n, k, 2 * word + 1) << 8;
        EXPECT_EQ(bits >> (4 * i) & 15, code);
        EXPECT_EQ(byteAt(e, n, k, 256 + n % 16),
                  static_cast<unsigned>((*blocks.scales)[element / 32]));
      }
  // Padding rows: code 0 and scale 127.
  for (int64_t n = 18; n < 32; ++n) {
    EXPECT_EQ(byteAt(1, n, 0, 256 + n % 16), 127u);
    EXPECT_EQ(byteAt(1, n, 0, 4 * (n % 16)), 0u);
  }
  FailureOr<ReferenceValue> back = unpackLayout(buffer, type, type.getShape(), problem);
  ASSERT_TRUE(succeeded(back)) << problem;
  EXPECT_EQ(*back->getBlocks().codes, *blocks.codes);
  EXPECT_EQ(*back->getBlocks().scales, *blocks.scales);
}

/// The number that a code of an E2M1 is.
static double decodeE2M1(unsigned code) {
  static const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8 ? -1 : 1) * magnitudes[code & 7];
}

/// What a product reads: words to pairs of bf16 by rotating and masking, times the scale as the
/// exponent of a bf16, and in the end the row's factor.
static double readFragment(ArrayRef<std::byte> run, int64_t tiles, int64_t row, int64_t column) {
  static const int rotations[] = {4, 10, 14, 0, 6, 12, 2, 8};
  uint32_t used = 0;
  for (int pair = 0; pair < 3; ++pair)
    used |= 0x81c081c0u >> rotations[pair] | 0x81c081c0u << (32 - rotations[pair]);
  int64_t w = row / 16, g = row % 16 / 2, s = row % 2;
  int64_t inTile = column % 64, b = inTile / 32, inBlock = inTile % 32;
  int64_t pair = inBlock / 16 * 4 + inBlock / 8 % 2 * 2 + s, t = inBlock % 8 / 2, h = inBlock % 2;
  const std::byte *tile = run.data() + column / 64 * 2176;
  uint32_t words[2];
  std::memcpy(words, tile + (32 * w + 4 * g + t) * 16 + 8 * b, 8);
  uint32_t word = pair < 3 ? words[0]
                  : pair < 6 ? words[1]
                             : (words[0] & ~used) | (words[1] & used);
  uint32_t rotated = rotations[pair] ? word << rotations[pair] | word >> (32 - rotations[pair]) : word;
  auto toFloat = [](uint32_t bf16) {
    return std::bit_cast<float>((bf16 & 0xffff) << 16);
  };
  double value = toFloat((rotated & 0x81c081c0u) >> (16 * h));
  auto scale = static_cast<uint32_t>(tile[2048 + 4 * (8 * w + g) + 2 * s + b]);
  float factor;
  std::memcpy(&factor, run.data() + tiles * 2176 + row * 4, 4);
  return value * toFloat(scale << 7) * factor;
}

TEST_F(LayoutTest, FragmentsBecomeTheNumbersOfProducts) {
  for (Swizzle swizzle : {Swizzle::fragments, Swizzle::fragments_of_halves}) {
    // 70 rows and 96 columns: tiles with padding on both sides.
    constexpr int64_t n = 70, k = 96;
    auto type = BlockTensorType::get(test.get(), {2, n, k}, BlockFormat::mxfp4,
                                     makeLayout({64, 64}, {0, 1}, swizzle));
    ReferenceBlockTensor blocks = makeRandomBlocks({2, n, k});
    ReferenceTensor buffer = *packLayout(blocks, type, problem);
    constexpr int64_t tiles = 2, runBytes = tiles * 2176 + 256;
    ASSERT_EQ(buffer.getShape(), ArrayRef<int64_t>({2, 2, runBytes}));
    for (int64_t e = 0; e < 2; ++e)
      for (int64_t r = 0; r < 128; ++r) {
        ArrayRef<std::byte> run = buffer.getBytes().slice((e * 2 + r / 64) * runBytes, runBytes);
        int64_t row = swizzle == Swizzle::fragments ? r : r / 2 + r % 2 * (n / 2);
        bool isNaN = false;
        for (int64_t b = 0; r < n && b < k / 32; ++b)
          isNaN |= static_cast<unsigned>((*blocks.scales)[(e * n + row) * (k / 32) + b]) == 255;
        for (int64_t c = 0; c < tiles * 64; ++c) {
          double expected = 0;
          if (r < n && c < k) {
            int64_t element = (e * n + row) * k + c;
            auto pair = static_cast<unsigned>((*blocks.codes)[element / 2]);
            auto scale = static_cast<unsigned>((*blocks.scales)[element / 32]);
            expected = std::ldexp(decodeE2M1(c % 2 ? pair >> 4 : pair & 15), int(scale) - 127);
          }
          double got = readFragment(run, tiles, r % 64, c);
          if (isNaN)
            EXPECT_TRUE(std::isnan(got));
          // Scales far below the row's largest are lost; no sum in f32 would show them.
          else if (got != expected)
            EXPECT_LT(std::fabs(expected), std::ldexp(1.0, -120)) << r << " " << c;
        }
      }
    EXPECT_TRUE(failed(unpackLayout(buffer, type, type.getShape(), problem)));
    EXPECT_EQ(problem.find("scales cannot be read back"), 0u) << problem;
  }
}

TEST_F(LayoutTest, UnfitTypesAreRefused) {
  auto plain = BlockTensorType::get(test.get(), {16, 32}, BlockFormat::mxfp4, {});
  EXPECT_TRUE(failed(packLayout(makeRandomBlocks({16, 32}), plain, problem)));
  EXPECT_NE(problem.find("nibble_words"), std::string::npos) << problem;
  auto nibbles = RankedTensorType::get({16, 32}, builder.getF32Type(),
                                       makeLayout({16, 32}, {0, 1}, Swizzle::nibble_words));
  EXPECT_TRUE(failed(packLayout(makeNumbered(builder.getF32Type(), {16, 32}), nibbles, problem)));
  auto panels = RankedTensorType::get({16, 2}, builder.getF32Type(),
                                      makeLayout({16, 1}, {1, 0}, Swizzle::none));
  EXPECT_TRUE(failed(
      unpackLayout(makeNumbered(builder.getF32Type(), {1, 2, 16}), panels, {16, 2}, problem)));
  EXPECT_EQ(problem.find("expected a buffer of [1, 2, 1, 16]"), 0u) << problem;
}
