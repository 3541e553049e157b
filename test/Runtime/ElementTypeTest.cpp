#include "runtime/base/ElementType.h"

#include "runtime/bundle/Bundle.h"
#include "test/Runtime/Support.h"

#include <cmath>
#include <cstring>

using namespace moert;

TEST(ElementType, NumbersAreThoseOfTheSchema) {
  for (unsigned i = 1; i < elementTypeCount; ++i) {
    std::string name(elementTypeName(static_cast<ElementType>(i)));
    EXPECT_TRUE(moec::bundle::ElementType_IsValid(static_cast<int>(i))) << name;
    std::string upper;
    for (char c : name)
      upper += static_cast<char>(std::toupper(c));
    EXPECT_EQ(moec::bundle::ElementType_Name(static_cast<moec::bundle::ElementType>(i)), upper);
    EXPECT_EQ(elementTypeFromName(name), static_cast<ElementType>(i));
  }
  EXPECT_FALSE(moec::bundle::ElementType_IsValid(elementTypeCount));
  EXPECT_EQ(elementTypeFromName("unspecified"), std::nullopt);
}

TEST(ElementType, SizesDoNotOverflow) {
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(tensorBytes(ElementType::F32, Shape{2, 3}), 24u);
  EXPECT_EQ(tensorBytes(ElementType::I1, Shape{3}), 3u);
  EXPECT_EQ(tensorBytes(ElementType::F4E2M1, Shape{3}), 2u);
  EXPECT_EQ(tensorBytes(ElementType::I2, Shape{5}), 2u);
  EXPECT_EQ(tensorBytes(ElementType::I4, Shape{INT64_MAX}), std::uint64_t(1) << 62);
  EXPECT_EQ(tensorBytes(ElementType::F32, Shape{INT64_C(1) << 61, 1}), std::nullopt);
  EXPECT_EQ(tensorBytes(ElementType::F32, Shape{(INT64_C(1) << 42) + 1, 1 << 20}), std::nullopt);
  EXPECT_EQ(tensorBytes(ElementType::Unspecified, Shape{1}), std::nullopt);
  EXPECT_EQ(tensorBytes(static_cast<ElementType>(200), Shape{1}), std::nullopt);
}

TEST(ElementType, HalvesRoundTripAndRoundToEven) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    auto half = static_cast<std::uint16_t>(bits);
    float f16 = floatFromF16(half), bf16 = floatFromBf16(half);
    if (std::isnan(f16))
      EXPECT_TRUE(std::isnan(floatFromF16(f16FromFloat(f16))));
    else
      EXPECT_EQ(f16FromFloat(f16), half);
    if (std::isnan(bf16))
      EXPECT_TRUE(std::isnan(floatFromBf16(bf16FromFloat(bf16))));
    else
      EXPECT_EQ(bf16FromFloat(bf16), half);
  }
  EXPECT_EQ(bf16FromFloat(1.0f + 0x1p-8f), 0x3f80); // halfway: to even
  EXPECT_EQ(bf16FromFloat(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(f16FromFloat(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(f16FromFloat(1.0f + 0x3p-11f), 0x3c02);
  EXPECT_EQ(f16FromFloat(65519.0f), 0x7bff);
  EXPECT_EQ(f16FromFloat(65520.0f), 0x7c00);
  EXPECT_EQ(f16FromFloat(0x1p-25f), 0);
  EXPECT_EQ(f16FromFloat(0x1.8p-25f), 1);
}

TEST(ElementType, SmallFloats) {
  EXPECT_EQ(floatFromSmall(ElementType::F8E4M3, 0x7e), 448.0f);
  EXPECT_TRUE(std::isnan(floatFromSmall(ElementType::F8E4M3, 0xff)));
  EXPECT_EQ(floatFromSmall(ElementType::F8E4M3, 0x01), 0x1p-9f);
  EXPECT_EQ(floatFromSmall(ElementType::F8E5M2, 0x7c), INFINITY);
  EXPECT_EQ(floatFromSmall(ElementType::F8E5M2, 0x7b), 57344.0f);
  EXPECT_TRUE(std::isnan(floatFromSmall(ElementType::F8E4M3FNUZ, 0x80)));
  EXPECT_EQ(floatFromSmall(ElementType::F8E4M3FNUZ, 0x7f), 240.0f);
  const float values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (std::uint8_t i = 0; i < 8; ++i) {
    EXPECT_EQ(floatFromSmall(ElementType::F4E2M1, i), values[i]);
    EXPECT_EQ(floatFromSmall(ElementType::F4E2M1, i | 8), -values[i]);
  }
  EXPECT_EQ(floatFromSmall(ElementType::E8M0, 127), 1.0f);
  EXPECT_TRUE(std::isnan(floatFromSmall(ElementType::E8M0, 255)));
}
