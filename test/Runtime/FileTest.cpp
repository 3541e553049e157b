#include "runtime/base/File.h"

#include "test/Runtime/Support.h"

#include <sys/stat.h>
#include <unistd.h>

using namespace moert;
using namespace moert::test;

TEST(Folder, OpensOnlyBelowItself) {
  TemporaryFolder folder;
  ASSERT_TRUE(isOk(makeFolder(folder / "in")));
  ASSERT_TRUE(isOk(makeFolder(folder / "in/sub")));
  writeFile(folder / "outside", "secret");
  writeFile(folder / "in/sub/x", "inside");
  auto opened = Folder::open(folder / "in");
  ASSERT_TRUE(isOk(opened));
  auto inside = opened->openFile("sub/x");
  ASSERT_TRUE(isOk(inside));
  EXPECT_EQ(inside->size(), 6u);
  for (const char *path : {"../outside", "sub/../../outside", "/etc/passwd", "", ".", "sub//x",
                           "./sub/x", "sub/", "sub\\x"})
    EXPECT_TRUE(fails(opened->openFile(path), ErrorCode::InvalidData, "the path")) << path;
  EXPECT_TRUE(
      fails(opened->openFile(std::string_view("sub\0x", 5)), ErrorCode::InvalidData, "NUL"));
  EXPECT_TRUE(fails(opened->openFile(std::string(5000, 'a')), ErrorCode::InvalidData, "4096"));
  EXPECT_TRUE(fails(opened->openFile("sub"), ErrorCode::InvalidData, "found a folder"));
  EXPECT_TRUE(fails(opened->openFile("none"), ErrorCode::NotFound, "in/none"));
}

TEST(Folder, LinksAreRefusedUnlessAllowed) {
  TemporaryFolder folder;
  ASSERT_TRUE(isOk(makeFolder(folder / "in")));
  ASSERT_TRUE(isOk(makeFolder(folder / "blobs")));
  writeFile(folder / "blobs/abc", "data");
  ASSERT_EQ(symlink("../blobs/abc", (folder / "in/file").c_str()), 0);
  ASSERT_EQ(symlink("../blobs", (folder / "in/directory").c_str()), 0);
  auto strict = Folder::open(folder / "in"), loose = Folder::open(folder / "in", Links::Allow);
  ASSERT_TRUE(isOk(strict));
  ASSERT_TRUE(isOk(loose));
  EXPECT_TRUE(fails(strict->openFile("file"), ErrorCode::InvalidData, "symbolic links"));
  EXPECT_FALSE(strict->openFile("directory/abc").isOk());
  EXPECT_TRUE(isOk(loose->openFile("file")));
  EXPECT_TRUE(fails(loose->openFile("../blobs/abc"), ErrorCode::InvalidData, "the path"));
}

TEST(Folder, WhatIsNoFileDoesNotBlock) {
  TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  auto opened = Folder::open(folder.path());
  ASSERT_TRUE(isOk(opened));
  EXPECT_TRUE(fails(opened->openFile("pipe"), ErrorCode::InvalidData, "regular file"));
  EXPECT_TRUE(fails(moert::File::open(folder / "pipe"), ErrorCode::InvalidData, "regular file"));
}

TEST(File, TruncatedWhileOpenIsAnError) {
  TemporaryFolder folder;
  writeFile(folder / "f", std::string(10000, 'x'));
  auto file = moert::File::open(folder / "f");
  ASSERT_TRUE(isOk(file));
  ASSERT_EQ(truncate((folder / "f").c_str(), 100), 0);
  std::vector<std::byte> bytes(200);
  EXPECT_TRUE(fails(file->readAt(bytes, 0), ErrorCode::InvalidData, "truncated"));
  EXPECT_TRUE(fails(file->readAll(1 << 20), ErrorCode::InvalidData, "truncated"));
  EXPECT_TRUE(isOk(file->readAt(std::span(bytes).first(100), 0)));
  EXPECT_FALSE(file->readAt(bytes, UINT64_MAX - 3).isOk());
  EXPECT_TRUE(fails(file->readAll(9999), ErrorCode::InvalidData, "at most 9999"));
}

TEST(AtomicFile, AppearsWhole) {
  TemporaryFolder folder;
  writeFile(folder / "f", "old");
  {
    auto file = AtomicFile::create(folder / "f");
    ASSERT_TRUE(isOk(file));
    ASSERT_TRUE(isOk(file->write(std::string_view("half"))));
  }
  EXPECT_EQ(readFile(folder / "f"), "old");
  ASSERT_TRUE(isOk(writeFileAtomic(folder / "f", "new")));
  EXPECT_EQ(readFile(folder / "f"), "new");
  auto listed = Folder::open(folder.path());
  ASSERT_TRUE(isOk(listed));
  EXPECT_EQ(*listed->list(), std::vector<std::string>{"f"});
  EXPECT_FALSE(writeFileAtomic(folder / "none/f", "x").isOk());
}

TEST(AtomicFolder, AppearsWholeAndReplacesOnlyWhatItMay) {
  TemporaryFolder folder;
  std::string target = folder / "out";
  {
    auto fresh = AtomicFolder::create(target);
    ASSERT_TRUE(isOk(fresh));
    writeFile(joinPath(fresh->path(), "a"), "1");
  }
  EXPECT_FALSE(fileExists(target));
  auto write = [&](const char *content, bool replaceable) {
    auto fresh = AtomicFolder::create(target + "/");
    EXPECT_TRUE(isOk(fresh));
    writeFile(joinPath(fresh->path(), "a"), content);
    return fresh->commit([&](const std::string &) { return replaceable; });
  };
  EXPECT_TRUE(isOk(write("1", false)));
  EXPECT_TRUE(fails(write("2", false), ErrorCode::InputOutput, "not replaced"));
  EXPECT_EQ(readFile(target + "/a"), "1");
  EXPECT_TRUE(isOk(write("3", true)));
  EXPECT_EQ(readFile(target + "/a"), "3");
  auto listed = Folder::open(folder.path());
  ASSERT_TRUE(isOk(listed));
  EXPECT_EQ(*listed->list(), std::vector<std::string>{"out"});
}

TEST(Files, RemoveAllDoesNotFollowLinks) {
  TemporaryFolder folder;
  ASSERT_TRUE(isOk(makeFolder(folder / "keep")));
  writeFile(folder / "keep/f", "x");
  ASSERT_TRUE(isOk(makeFolder(folder / "gone")));
  ASSERT_EQ(symlink("../keep", (folder / "gone/link").c_str()), 0);
  ASSERT_TRUE(isOk(removeAll(folder / "gone")));
  EXPECT_FALSE(fileExists(folder / "gone"));
  EXPECT_TRUE(fileExists(folder / "keep/f"));
  EXPECT_TRUE(isOk(removeAll(folder / "gone")));
}

TEST(Files, Paths) {
  EXPECT_EQ(joinPath("a/", "b"), "a/b");
  EXPECT_EQ(joinPath("a", "/b"), "/b");
  EXPECT_EQ(baseName("a/b/"), "b");
  EXPECT_EQ(parentPath("a/b"), "a");
  EXPECT_EQ(parentPath("a"), ".");
  EXPECT_EQ(parentPath("/a"), "/");
  EXPECT_EQ(parentPath("/a/b//"), "/a");
  EXPECT_EQ(baseName("b"), "b");
  EXPECT_EQ(joinPath("", "b"), "b");
  EXPECT_EQ(joinPath("a", ""), "a/");
  EXPECT_TRUE(fails(moert::File::open(std::string("a\0b", 3)), ErrorCode::InvalidArgument, "NUL"));
  EXPECT_TRUE(fails(Folder::open("/dev/null"), ErrorCode::NotFound, "cannot open the folder"));
  EXPECT_TRUE(fails(makeFolder("/dev/null"), ErrorCode::InputOutput, "cannot create the folder"));
  EXPECT_TRUE(fails(makeFolder("/dev/null/x"), ErrorCode::InputOutput, "cannot create the folder"));
}
