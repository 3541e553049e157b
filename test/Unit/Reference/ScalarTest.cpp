// Storage and rounding of every element type, against APFloat and the runtime's conversions.

#include "moec/Dialect/MoE/Reference/Scalar.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/base/ElementType.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
using namespace mlir::moec::moe;

namespace {
class ScalarTest : public ::testing::Test {
protected:
  MLIRContext context;
  Builder builder{&context};
};
} // namespace

static uint16_t store16(const ScalarType &type, double value) {
  std::byte bytes[2];
  type.store(bytes, Scalar::fromReal(value));
  uint16_t bits;
  std::memcpy(&bits, bytes, 2);
  return bits;
}

static double load16(const ScalarType &type, uint16_t bits) {
  std::byte bytes[2];
  std::memcpy(bytes, &bits, 2);
  return type.load(bytes).real;
}

static uint16_t roundWithAPFloat(double value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool losesInformation;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInformation);
  return static_cast<uint16_t>(number.bitcastToAPInt().getZExtValue());
}

TEST_F(ScalarTest, EveryPatternOf16BitsReadsBack) {
  ScalarType bf16 = *ScalarType::get(builder.getBF16Type());
  ScalarType f16 = *ScalarType::get(builder.getF16Type());
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    auto pattern = static_cast<uint16_t>(bits);
    double brain = load16(bf16, pattern), half = load16(f16, pattern);
    if (std::isnan(brain)) {
      EXPECT_TRUE(std::isnan(moert::floatFromBf16(pattern)));
      EXPECT_TRUE(std::isnan(load16(bf16, store16(bf16, brain))));
    } else {
      EXPECT_EQ(brain, moert::floatFromBf16(pattern));
      EXPECT_EQ(store16(bf16, brain), pattern);
    }
    if (std::isnan(half)) {
      EXPECT_TRUE(std::isnan(moert::floatFromF16(pattern)));
      EXPECT_TRUE(std::isnan(load16(f16, store16(f16, half))));
    } else {
      EXPECT_EQ(half, moert::floatFromF16(pattern));
      EXPECT_EQ(store16(f16, half), pattern);
    }
  }
}

TEST_F(ScalarTest, DoublesAreRoundedOnce) {
  ScalarType bf16 = *ScalarType::get(builder.getBF16Type());
  ScalarType f16 = *ScalarType::get(builder.getF16Type());
  std::mt19937_64 random(1);
  std::vector<double> values = {
      0.0,    -0.0,   65519.999, 65520.0, 1e300,
      -1e300, 3.4e38, 1e-45,     1e-60,   std::numeric_limits<double>::infinity()};
  for (int i = 0; i < 100000; ++i)
    values.push_back(std::ldexp(static_cast<double>(random()) * 0x1p-64 + 1,
                                static_cast<int>(random() % 300) - 150));
  // Around the middle between two neighbours, nearer than single precision can tell.
  for (unsigned bits = 0; bits < 0x7f00; bits += 37)
    for (const ScalarType &type : {bf16, f16}) {
      double low = load16(type, static_cast<uint16_t>(bits)),
             high = load16(type, static_cast<uint16_t>(bits + 1));
      if (!std::isfinite(high))
        continue;
      double middle = (low + high) / 2;
      values.insert(values.end(),
                    {middle, std::nextafter(middle, low), std::nextafter(middle, high)});
    }
  for (double value : values)
    for (double signedValue : {value, -value}) {
      EXPECT_EQ(store16(bf16, signedValue), roundWithAPFloat(signedValue, llvm::APFloat::BFloat()))
          << signedValue;
      EXPECT_EQ(store16(f16, signedValue), roundWithAPFloat(signedValue, llvm::APFloat::IEEEhalf()))
          << signedValue;
    }
}

TEST_F(ScalarTest, SmallFloatsReadBack) {
  std::pair<Type, moert::ElementType> types[] = {
      {Float8E4M3FNType::get(&context), moert::ElementType::F8E4M3},
      {Float8E5M2Type::get(&context), moert::ElementType::F8E5M2},
      {Float8E8M0FNUType::get(&context), moert::ElementType::E8M0},
      {Float4E2M1FNType::get(&context), moert::ElementType::F4E2M1}};
  for (auto [type, fileType] : types) {
    ScalarType scalarType = *ScalarType::get(type);
    EXPECT_EQ(scalarType.getBytes(), 1u);
    for (unsigned bits = 0; bits < (1u << scalarType.getBits()); ++bits) {
      std::byte byte{static_cast<uint8_t>(bits)};
      double value = scalarType.load(&byte).real;
      float expected = moert::floatFromSmall(fileType, static_cast<uint8_t>(bits));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(value));
        continue;
      }
      EXPECT_EQ(value, expected);
      std::byte again{};
      scalarType.store(&again, Scalar::fromReal(value));
      EXPECT_EQ(again, byte);
    }
  }
}

TEST_F(ScalarTest, IntegersWrapAndExtend) {
  ScalarType i4 = *ScalarType::get(builder.getIntegerType(4));
  EXPECT_EQ(i4.round(Scalar::fromInteger(9)).integer, -7);
  EXPECT_EQ(i4.getUnsigned(Scalar::fromInteger(-7)), 9u);
  std::byte byte;
  i4.store(&byte, Scalar::fromInteger(-7));
  EXPECT_EQ(byte, std::byte{9}); // the upper half stays clear
  EXPECT_EQ(i4.load(&byte).integer, -7);

  ScalarType i1 = *ScalarType::get(builder.getI1Type());
  EXPECT_EQ(i1.round(Scalar::fromInteger(-1)).integer, 1);
  EXPECT_EQ(i1.getSigned(Scalar::fromInteger(1)), -1);

  ScalarType u8 = *ScalarType::get(builder.getIntegerType(8, /*isSigned=*/false));
  EXPECT_EQ(u8.round(Scalar::fromInteger(-1)).integer, 255);

  ScalarType i64 = *ScalarType::get(builder.getI64Type());
  EXPECT_EQ(i64.getPoison().integer, std::numeric_limits<int64_t>::min());
}

TEST_F(ScalarTest, OtherTypesAreUnknown) {
  EXPECT_FALSE(ScalarType::get(builder.getIntegerType(65)));
  EXPECT_FALSE(ScalarType::get(ComplexType::get(builder.getF32Type())));
  EXPECT_FALSE(ScalarType::get(VectorType::get({4}, builder.getF32Type())));
  EXPECT_FALSE(ScalarType::get(Float128Type::get(&context)));
}
