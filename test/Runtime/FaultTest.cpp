// Every call to the operating system fails once, in turn: whatever the runtime is doing, it must
// end in an error (or not have needed the call), and leave nothing half-written behind. This
// program defines the calls itself and so stands in front of the C library's.
#include "runtime/session/Session.h"
#include "test/Runtime/TestBundle.h"

#include <cerrno>
#include <cstdarg>
#include <functional>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// Calls to go until one fails; negative: none does.
thread_local long callsLeft = -1;
thread_local bool failed = false;

// As on Linux before 5.6.
bool withoutOpenat2 = false;

bool fails() {
  if (callsLeft < 0 || callsLeft-- != 0)
    return false;
  failed = true;
  errno = EIO;
  return true;
}

} // namespace

// Every call goes through here, also those that the C library has no function for.
extern "C" long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
  register long d __asm__("r10") = va_arg(list, long);
  register long e __asm__("r8") = va_arg(list, long);
  register long f __asm__("r9") = va_arg(list, long);
  va_end(list);
  if (number == SYS_openat2 && withoutOpenat2) {
    errno = ENOSYS;
    return -1;
  }
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d), "r"(e), "r"(f)
                   : "rcx", "r11", "memory");
  if (result < 0 && result > -4096) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}

extern "C" {
ssize_t pread(int fd, void *buffer, size_t count, off_t offset) {
  return fails() ? -1 : syscall(SYS_pread64, fd, buffer, count, offset);
}
ssize_t write(int fd, const void *buffer, size_t count) {
  return fails() ? -1 : syscall(SYS_write, fd, buffer, count);
}
int fsync(int fd) { return fails() ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }
int rename(const char *from, const char *to) {
  return fails() ? -1 : static_cast<int>(syscall(SYS_rename, from, to));
}
int mkdir(const char *path, mode_t mode) {
  return fails() ? -1 : static_cast<int>(syscall(SYS_mkdir, path, mode));
}
int openat(int folder, const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return fails() ? -1 : static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}
int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return fails() ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int memfd_create(const char *name, unsigned flags) {
  return fails() ? -1 : static_cast<int>(syscall(SYS_memfd_create, name, flags));
}
}

using namespace moert;
using namespace moert::test;

namespace {

// Runs `use` with the first call failing, then the second, until a run needs no more calls. Returns
// how many failed.
int sweep(const std::function<Status()> &use) {
  for (int n = 0; n < 10000; ++n) {
    callsLeft = n;
    failed = false;
    Status status = use();
    callsLeft = -1;
    if (!failed) {
      EXPECT_TRUE(isOk(status));
      return n;
    }
    if (!status.isOk()) {
      EXPECT_FALSE(status.message().empty());
      EXPECT_NE(status.code(), ErrorCode::Internal);
    }
  }
  ADD_FAILURE() << "no end";
  return -1;
}

Status loadAndStep(const std::string &path) {
  MOERT_ASSIGN_OR_RETURN(auto bundle, Bundle::open(path));
  MOERT_RETURN_IF_ERROR(bundle->verify());
  MOERT_ASSIGN_OR_RETURN(auto model, Model::load(bundle, {.threads = 1}));
  MOERT_ASSIGN_OR_RETURN(Session session, Session::create(model));
  MOERT_ASSIGN_OR_RETURN(Sequence sequence, session.createSequence());
  std::int32_t token = 1;
  StepPart part{sequence, {&token, 1}};
  return session.step({&part, 1}).status();
}

std::vector<std::string> filesIn(const std::string &path) {
  auto folder = Folder::open(path);
  EXPECT_TRUE(isOk(folder));
  return *folder->list();
}

} // namespace

TEST(Faults, OpeningLoadingAndRunning) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  EXPECT_GT(sweep([&] { return loadAndStep(folder / "b"); }), 5);
}

TEST(Faults, FilesAreWrittenWholeOrNotAtAll) {
  TemporaryFolder folder;
  writeFile(folder / "f", "old");
  int faults = sweep([&] {
    Status status = writeFileAtomic(folder / "f", "new");
    callsLeft = -1;
    EXPECT_EQ(filesIn(folder.path()), std::vector<std::string>{"f"});
    std::string content = readFile(folder / "f");
    EXPECT_TRUE(content == "old" || content == "new") << content;
    if (status.isOk())
      EXPECT_EQ(content, "new");
    writeFile(folder / "f", "old");
    return status;
  });
  EXPECT_GE(faults, 5); // create, write, sync, rename, open and sync the folder
}

TEST(Faults, FoldersAreWrittenWholeOrNotAtAll) {
  TemporaryFolder folder;
  ASSERT_TRUE(isOk(makeFolder(folder / "b")));
  writeFile(folder / "b/f", "old");
  int faults = sweep([&]() -> Status {
    Status status;
    {
      auto fresh = AtomicFolder::create(folder / "b");
      status = fresh.status();
      if (fresh.isOk()) {
        status = writeFileAtomic(fresh->path() + "/f", "new");
        if (status.isOk())
          status = fresh->commit([](const std::string &) { return true; });
      }
    }
    callsLeft = -1;
    std::string content = readFile(folder / "b/f");
    EXPECT_TRUE(content == "old" || content == "new") << content;
    if (status.isOk())
      EXPECT_EQ(content, "new");
    // A leftover is possible where the clean-up itself failed, but it has a temporary name.
    for (const std::string &name : filesIn(folder.path()))
      EXPECT_TRUE(name == "b" || name.rfind(".b.tmp-", 0) == 0) << name;
    writeFile(folder / "b/f", "old");
    return status;
  });
  EXPECT_GE(faults, 10);
}

// The way that old kernels need is as strict as the new one.
TEST(Faults, FoldersAreConfinedWithoutOpenat2) {
  withoutOpenat2 = true;
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  writeFile(folder / "outside", "secret");
  EXPECT_TRUE(isOk(loadAndStep(folder / "b")));
  ASSERT_EQ(symlink("../outside", (folder / "b/link").c_str()), 0);
  ASSERT_EQ(symlink("..", (folder / "b/up").c_str()), 0);
  auto opened = Folder::open(folder / "b");
  ASSERT_TRUE(isOk(opened));
  EXPECT_TRUE(isOk(opened->openFile("code/kernels.so")));
  EXPECT_TRUE(test::fails(opened->openFile("link"), ErrorCode::InvalidData, "symbolic links"));
  EXPECT_FALSE(opened->openFile("up/outside").isOk());
  EXPECT_TRUE(test::fails(opened->openFile("code/none"), ErrorCode::NotFound, "cannot open"));
  EXPECT_TRUE(test::fails(opened->openFile("none/none"), ErrorCode::NotFound, "cannot open"));
  EXPECT_FALSE(opened->openFile("manifest.moeb/x").isOk());
  EXPECT_TRUE(test::fails(opened->openFile("code"), ErrorCode::InvalidData, "found a folder"));
  withoutOpenat2 = false;
}
