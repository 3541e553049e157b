#include "lib/Conversion/ImportONNX/SymbolicSize.h"

#include <gtest/gtest.h>

using mlir::moec::onnx_import::SymbolicSize;

namespace {

SymbolicSize batch = SymbolicSize::symbol(0), tokens = SymbolicSize::symbol(1),
             past = SymbolicSize::symbol(2);

SymbolicSize plus(const SymbolicSize &a, const SymbolicSize &b) { return *SymbolicSize::add(a, b); }
SymbolicSize times(const SymbolicSize &a, const SymbolicSize &b) {
  return *SymbolicSize::multiply(a, b);
}

TEST(SymbolicSize, OrderDoesNotMatter) {
  EXPECT_EQ(plus(past, tokens), plus(tokens, past));
  EXPECT_EQ(times(batch, times(tokens, 4)), times(times(4, batch), tokens));
  EXPECT_NE(plus(past, tokens), times(past, tokens));
}

TEST(SymbolicSize, Cancels) {
  SymbolicSize sum = plus(past, plus(tokens, 1));
  EXPECT_EQ(*SymbolicSize::subtract(sum, past), plus(tokens, 1));
  EXPECT_TRUE(SymbolicSize::subtract(sum, sum)->isConstant(0));
}

TEST(SymbolicSize, DividesExactly) {
  SymbolicSize elements = times(times(batch, tokens), 48);
  EXPECT_EQ(SymbolicSize::divideExactly(elements, times(tokens, 8)), times(batch, 6));
  EXPECT_EQ(SymbolicSize::divideExactly(times(elements, plus(past, tokens)), plus(tokens, past)),
            elements);
  EXPECT_EQ(SymbolicSize::divideExactly(SymbolicSize(0), tokens), SymbolicSize(0));
  EXPECT_EQ(SymbolicSize::divideExactly(elements, 5), std::nullopt);
  EXPECT_EQ(SymbolicSize::divideExactly(elements, past), std::nullopt);
  EXPECT_EQ(SymbolicSize::divideExactly(elements, SymbolicSize(0)), std::nullopt);
  EXPECT_EQ(SymbolicSize::divideExactly(plus(past, tokens), tokens), std::nullopt);
}

TEST(SymbolicSize, KnowsWhatIsNeverBelow) {
  EXPECT_TRUE(plus(past, plus(tokens, 1)).isAtLeast(1));
  EXPECT_FALSE(plus(past, tokens).isAtLeast(1)); // both may be 0
  EXPECT_FALSE(SymbolicSize::subtract(past, tokens)->isAtLeast(0));
  EXPECT_FALSE(plus(past, -1).isAtLeast(0));
}

TEST(SymbolicSize, ReportsOverflow) {
  SymbolicSize huge(INT64_MAX);
  EXPECT_EQ(SymbolicSize::add(huge, 1), std::nullopt);
  EXPECT_EQ(SymbolicSize::multiply(huge, 2), std::nullopt);
  EXPECT_EQ(SymbolicSize::multiply(SymbolicSize(INT64_MIN), -1), std::nullopt);
  EXPECT_EQ(SymbolicSize::subtract(0, INT64_MIN), std::nullopt);
  EXPECT_EQ(SymbolicSize::divideExactly(INT64_MIN, -1), std::nullopt);
}

TEST(SymbolicSize, BoundsTheDegree) {
  std::optional<SymbolicSize> power = tokens;
  for (int i = 0; i < 100 && power; ++i)
    power = SymbolicSize::multiply(*power, tokens);
  EXPECT_EQ(power, std::nullopt);
}

TEST(SymbolicSize, Prints) {
  auto name = [](unsigned symbol) { return std::string(1, "btp"[symbol]); };
  EXPECT_EQ(plus(times(times(batch, tokens), 2), plus(past, 3)).toString(name), "3 + 2*b*t + p");
  EXPECT_EQ(SymbolicSize().toString(name), "0");
}

} // namespace
