#include "runtime/session/Splitter.h"

#include "test/Runtime/Support.h"

using namespace moert;
using namespace moert::test;

namespace {

using Pieces = std::vector<std::string_view>;

Pieces split(std::string_view pattern, std::string_view text, SplitBehavior behavior,
             bool invert = false, PatternSyntax syntax = PatternSyntax::Oniguruma) {
  auto splitter = Splitter::create(pattern, syntax, behavior, invert);
  EXPECT_TRUE(isOk(splitter));
  Pieces pieces;
  EXPECT_TRUE(splitter.isOk() && isOk(splitter->split(text, pieces)));
  return pieces;
}

// The matches alone.
Pieces matches(std::string_view pattern, std::string_view text,
               PatternSyntax syntax = PatternSyntax::Oniguruma) {
  return split(pattern, text, SplitBehavior::Removed, true, syntax);
}

} // namespace

TEST(Splitter, DoesWithMatchesWhatTheBehaviorSays) {
  std::string_view text = "the-final--countdown";
  EXPECT_EQ(split("-", text, SplitBehavior::Isolated),
            (Pieces{"the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split("-", text, SplitBehavior::Removed), (Pieces{"the", "final", "countdown"}));
  EXPECT_EQ(split("-", text, SplitBehavior::MergedWithPrevious),
            (Pieces{"the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split("-", text, SplitBehavior::MergedWithNext),
            (Pieces{"the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split("-", text, SplitBehavior::Contiguous),
            (Pieces{"the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split("[a-z]+", text, SplitBehavior::Removed, true),
            (Pieces{"the", "final", "countdown"}));
}

TEST(Splitter, PatternsMeanWhatTheirLibrariesMean) {
  // Intersections, classes in classes and what is not in them.
  EXPECT_EQ(matches("[\\p{L}&&[^\\p{Han}]]+", "ab漢c"), (Pieces{"ab", "c"}));
  EXPECT_EQ(matches("[a-z&&[^aeiou]]", "abe"), (Pieces{"b"}));
  EXPECT_EQ(matches("[a[xy]]+", "axbya"), (Pieces{"ax", "ya"}));
  EXPECT_EQ(matches("[^a[xy]]+", "axbcya"), (Pieces{"bc"}));
  EXPECT_EQ(matches("[^a-y&&[^b]]", "abz"), (Pieces{"b", "z"}));
  // Scripts without their extensions: U+30FC is Common, and U+3007 has the script Han.
  EXPECT_EQ(matches("\\p{Katakana}", "アー"), (Pieces{"ア"}));
  EXPECT_EQ(matches("[\\p{Han}]+", "〇、漢"), (Pieces{"〇", "漢"}));
  // U+180E is no space.
  EXPECT_EQ(matches("\\s", "a\u180e\u3000"), (Pieces{"\u3000"}));
  EXPECT_EQ(matches("\\S", "\u180e\u3000"), (Pieces{"\u180e"}));
  // Words with marks.
  EXPECT_EQ(matches("\\w+", "e\u0301_1-x²"), (Pieces{"e\u0301_1", "x"}));
  EXPECT_EQ(matches("\\bx", "ax x"), (Pieces{"x"}));
  EXPECT_EQ(matches("\\h+", "0fG"), (Pieces{"0f"}));
  EXPECT_EQ(matches("^.", "ab\ncd"), (Pieces{"a", "c"}));
  EXPECT_EQ(matches("^.", "ab\ncd", PatternSyntax::Rust), (Pieces{"a"}));
  EXPECT_EQ(matches("(?m:.)+", "a\nb"), (Pieces{"a\nb"}));
  EXPECT_EQ(matches("\\u0041|\\x{1F600}", "A😀"), (Pieces{"A", "😀"}));
  // In Ruby a '+' behind an interval repeats it; in Rust it keeps what it has.
  EXPECT_EQ(matches("(?:a{1,2}+)b", "aaab"), (Pieces{"aaab"}));
  EXPECT_EQ(matches("a{1,2}+a", "aa", PatternSyntax::Rust), (Pieces{}));
  EXPECT_EQ(matches("a{,2}b", "aaab"), (Pieces{"aab"}));
  EXPECT_EQ(matches("(?i:'S)", "'s'ſ"), (Pieces{"'s", "'ſ"}));
}

TEST(Splitter, PatternsThatAreNotSupportedAreErrors) {
  for (const char *pattern :
       {"(?P<name>a)", "(*FAIL)",      "(?R)",   "a\\K",    "\\1", "[[:alpha:]]",
        "[a&&]",       "[a",           "\\",     "(a",      "a)",  "[\\W]",
        "\\p{",        "\\p{Klingon}", "\\p{1}", "\\x{zz}", "\\C", "[[[[[[[[[[[a]]]]]]]]]]]",
        "(?x)a",       "\\Q",          "a**+"})
    EXPECT_FALSE(Splitter::create(pattern, PatternSyntax::Oniguruma).isOk()) << pattern;
  EXPECT_FALSE(Splitter::create("[a--b]", PatternSyntax::Rust).isOk());
  EXPECT_FALSE(Splitter::create(std::string(10000, '('), PatternSyntax::Rust).isOk());
}

TEST(Splitter, ReplacesMatches) {
  auto splitter = Splitter::create(" +", PatternSyntax::Oniguruma);
  ASSERT_TRUE(isOk(splitter));
  EXPECT_EQ(*splitter->replace("a  b c", "▁"), "a▁b▁c");
  EXPECT_EQ(*splitter->replace("", "▁"), "");
}

TEST(Splitter, LongWordsMatch) {
  std::string word;
  for (int i = 0; i < 300'000; ++i)
    word += "é";
  EXPECT_EQ(matches("[\\p{L}&&[^\\p{Han}]]+", word), (Pieces{word}));
  EXPECT_EQ(matches("(?:a|é)+", word, PatternSyntax::Rust), (Pieces{word}));
}
