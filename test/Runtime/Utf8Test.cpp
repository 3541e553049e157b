#include "runtime/session/Utf8.h"

#include "gtest/gtest.h"

using namespace moert;

static std::string lossy(std::string_view bytes) {
  std::string text;
  EXPECT_EQ(appendUtf8(text, bytes, true), bytes.size());
  return text;
}

TEST(Utf8, KeepsWhatIsValid) {
  std::string all;
  for (std::uint32_t code = 1; code < 0x110000; code += code < 0x3000 ? 1 : 97)
    if (code < 0xd800 || code > 0xdfff)
      appendCodePoint(all, code);
  EXPECT_EQ(lossy(all), all);
}

TEST(Utf8, ReplacesTheLongestPartThatCouldHaveBegunACharacter) {
  EXPECT_EQ(lossy("a\x80z"), "a\xef\xbf\xbdz");
  EXPECT_EQ(lossy("\xe2\x82z"), "\xef\xbf\xbdz");           // cut in the middle: one
  EXPECT_EQ(lossy("\xc0\x80"), "\xef\xbf\xbd\xef\xbf\xbd"); // overlong
  EXPECT_EQ(lossy("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); // surrogate
  EXPECT_EQ(lossy("\xf4\x90\x80\x80").size(), 12u);                         // past U+10FFFF
  EXPECT_EQ(lossy("\xf0\x9f\x98"), "\xef\xbf\xbd");
}

TEST(Utf8, HoldsBackWhatMayBeCompleted) {
  std::string text;
  EXPECT_EQ(appendUtf8(text, "a\xf0\x9f\x98", false), 1u);
  EXPECT_EQ(text, "a");
  EXPECT_EQ(appendUtf8(text, "\xf0\x9f\x98\x80", false), 4u);
  EXPECT_EQ(text, "a\xf0\x9f\x98\x80");
  EXPECT_EQ(appendUtf8(text, "\xe0\x80", false), 2u); // can become nothing valid
}
