#include "runtime/base/CheckedMath.h"
#include "runtime/base/Sha256.h"
#include "test/Runtime/Support.h"

#include <set>

using namespace moert;
using namespace moert::test;

TEST(Status, TellsPlaceMessageAndHint) {
  Status status(ErrorCode::NotFound, "there is none", "file", "make one");
  EXPECT_EQ(std::move(status).in("folder").at("tensor").toString(),
            "folder: file: tensor: error: there is none\nhint: make one");
  EXPECT_EQ(Status().toString(), "ok");
}

TEST(Status, CopiesAndNamesOfCodes) {
  Status failure(ErrorCode::OutOfMemory, "m"), copy = failure, fine;
  copy = fine;
  EXPECT_TRUE(copy.isOk());
  EXPECT_EQ(copy.message(), "");
  copy = failure;
  EXPECT_EQ(copy.code(), ErrorCode::OutOfMemory);
  EXPECT_EQ(Status().in("x").at("y").toString(), "ok");
  EXPECT_EQ(Status(ErrorCode::Internal, "m").at("y").in("x").location(), "x: y");
  std::set<std::string_view> names;
  for (int code = 0; code <= 9; ++code)
    names.insert(errorCodeName(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), 10u);
}

TEST(Status, ProblemsAreCollectedAndCapped) {
  Problems problems("file");
  EXPECT_TRUE(isOk(problems.toStatus(ErrorCode::InvalidData)));
  problems.add("one");
  EXPECT_EQ(problems.toStatus(ErrorCode::InvalidData).toString(), "file: error: one");
  for (int i = 0; i < 60; ++i)
    problems.add("another");
  std::string text = problems.toStatus(ErrorCode::InvalidData).toString();
  EXPECT_NE(text.find("61 problems"), std::string::npos);
  EXPECT_NE(text.find("and 11 more"), std::string::npos);
}

TEST(Status, QuotesHostileText) {
  EXPECT_EQ(inQuotes("a'\n\x1b\\"), "'a\\'\\x0a\\x1b\\\\'");
  EXPECT_LT(inQuotes(std::string(1000, 'x')).size(), 210u);
}

TEST(CheckedMath, ElementCount) {
  std::int64_t huge = INT64_C(1) << 42;
  EXPECT_EQ(elementCount(std::vector<std::int64_t>{2, 3}), 6);
  EXPECT_EQ(elementCount(std::vector<std::int64_t>{}), 1);
  EXPECT_EQ(elementCount(std::vector<std::int64_t>{huge, huge, 0}), 0);
  EXPECT_EQ(elementCount(std::vector<std::int64_t>{0, huge, huge}), 0);
  EXPECT_EQ(elementCount(std::vector<std::int64_t>{huge, huge}), std::nullopt);
  EXPECT_EQ(elementCount(std::vector<std::int64_t>{-1, 0}), std::nullopt);
  EXPECT_EQ(elementCount(std::vector<std::int64_t>{-1, -1}), std::nullopt);
}

TEST(CheckedMath, RangesDoNotWrap) {
  EXPECT_TRUE(rangeFits(3, 7, 10));
  EXPECT_FALSE(rangeFits(4, 7, 10));
  EXPECT_FALSE(rangeFits(UINT64_MAX, 2, 10));
  EXPECT_FALSE(rangeFits(2, UINT64_MAX, 10));
  std::uint64_t aligned;
  EXPECT_TRUE(checkedAlign(65, 64, aligned));
  EXPECT_EQ(aligned, 128u);
  EXPECT_FALSE(checkedAlign(UINT64_MAX, 64, aligned));
}

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(toHex(sha256(std::string_view("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(toHex(sha256(std::string_view())),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  TemporaryFolder folder;
  std::string content(3 << 20, 'q');
  writeFile(folder / "f", content + "tail");
  auto file = moert::File::open(folder / "f");
  ASSERT_TRUE(isOk(file));
  auto digest = sha256(*file, 4, content.size());
  ASSERT_TRUE(isOk(digest));
  EXPECT_EQ(*digest, sha256(std::string_view(content.substr(4) + "tail")));
}
