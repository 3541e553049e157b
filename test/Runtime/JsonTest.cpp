#include "runtime/base/Json.h"

#include "test/Runtime/Support.h"

using namespace moert;
using namespace moert::test;

TEST(Json, BoundsAndDuplicates) {
  EXPECT_TRUE(isOk(parseJson(R"({"a": [1, 2.5, "x", null, true, {"b": {}}]})", "t")));
  EXPECT_TRUE(
      fails(parseJson(R"({"a": 1, "a": 2})", "t"), ErrorCode::InvalidData, "'a' occurs twice"));
  auto duplicate = parseJson(R"({"a": 1, "a": 2})", "t", {.allowDuplicateKeys = true});
  ASSERT_TRUE(isOk(duplicate));
  EXPECT_EQ((*duplicate)["a"], 2);
  EXPECT_TRUE(fails(parseJson(std::string(100000, '['), "t"), ErrorCode::InvalidData, "deep"));
  EXPECT_TRUE(
      fails(parseJson("[1, 2, 3]", "t", {.bytes = 5}), ErrorCode::InvalidData, "at most 5"));
  for (const char *text :
       {"", "{", "[1,]", "{\"a\" 1}", "nul", "\"\\ud800\"", "1 2", "\"\xff\"", "[1e999]"})
    EXPECT_TRUE(fails(parseJson(text, "name"), ErrorCode::InvalidData, "name: error: malformed"))
        << text;
}

TEST(Json, ViewsReportEverything) {
  auto document = parseJson(
      R"({"size": -1, "name": 7, "list": {"x": 1}, "deep": {"flag": "yes"}, "big": 18446744073709551615})",
      "config.json");
  ASSERT_TRUE(isOk(document));
  Problems problems("config.json");
  JsonView view(*document, problems);
  EXPECT_EQ(view["size"].integer(0, 10), std::nullopt);
  EXPECT_EQ(view["size"].integer(), -1);
  EXPECT_EQ(view["name"].string(), std::nullopt);
  EXPECT_TRUE(view["list"].elements().empty());
  EXPECT_EQ(view["deep"]["flag"].boolean(), std::nullopt);
  EXPECT_EQ(view["big"].integer(), std::nullopt);
  EXPECT_EQ(view["none"]["below"].integer(), std::nullopt);
  EXPECT_EQ(view.optional("none").integer(), std::nullopt);
  EXPECT_EQ(view["size"]["x"].integer(), std::nullopt);
  EXPECT_EQ(problems.toStatus(ErrorCode::InvalidData).toString(),
            "config.json: error: 7 problems:\n"
            "  size: expected an integer from 0 to 10, found -1\n"
            "  name: expected a string, found 7\n"
            "  list: expected an array, found object\n"
            "  deep.flag: expected true or false, found \"yes\"\n"
            "  big: expected an integer, found 18446744073709551615\n"
            "  none: is missing\n"
            "  size: expected an object, found -1");
}

TEST(Json, NumbersAndLongValues) {
  auto document = parseJson(R"({"x": 2.5, "y": 3, "z": "1", "long": ")" + std::string(300, 'q') +
                                R"(", "null": null, "list": [1, "a"]})",
                            "t");
  ASSERT_TRUE(isOk(document));
  Problems problems("t");
  JsonView view(*document, problems);
  EXPECT_EQ(view["x"].number(), 2.5);
  EXPECT_EQ(view["y"].number(), 3);
  EXPECT_EQ(view["list"].elements()[0].integer(), 1);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(view["z"].number(), std::nullopt);
  EXPECT_EQ(view["long"].integer(0), std::nullopt);
  EXPECT_EQ(view["null"].integer(), std::nullopt);
  EXPECT_FALSE(view.optional("null"));
  EXPECT_TRUE(view["list"].members().empty());
  EXPECT_EQ(view["list"].elements()[1].integer(INT64_MIN, 5), std::nullopt);
  std::string text = problems.toStatus(ErrorCode::InvalidData).toString();
  EXPECT_NE(text.find("5 problems"), std::string::npos) << text;
  EXPECT_NE(text.find("list[1]: expected an integer"), std::string::npos);
  EXPECT_LT(text.size(), 500u);
}
