// The writing half of File.h.
#include "runtime/base/File.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace moert {

namespace {

Status writeError(const std::string &what, const std::string &path) {
  return {errno == ENOENT ? ErrorCode::NotFound : ErrorCode::InputOutput,
          what + ": " + std::strerror(errno), path};
}

// Unique among the processes of a machine and among the calls of one process.
std::string temporaryName(const std::string &target) {
  static std::atomic<unsigned> counter{0};
  std::string path = target;
  while (path.size() > 1 && path.back() == '/')
    path.pop_back();
  return joinPath(parentPath(path), "." + std::string(baseName(path)) + ".tmp-" +
                                        std::to_string(getpid()) + "-" +
                                        std::to_string(counter.fetch_add(1)));
}

// A rename is on disk only once the folder is.
Status syncFolder(const std::string &path) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return writeError("cannot open the folder", path);
  int failed = fsync(fd);
  close(fd);
  // Some file systems cannot sync folders; the rename itself went well.
  if (failed && errno != EINVAL && errno != EROFS)
    return writeError("cannot sync the folder", path);
  return {};
}

// Applies `act` to everything below `path`, folders after what is in them.
Status walk(const std::string &path, unsigned depth,
            const std::function<Status(const std::string &, bool folder)> &act) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0)
    return errno == ENOENT ? Status() : writeError("cannot read", path);
  bool folder = S_ISDIR(info.st_mode);
  if (folder) {
    if (depth == 64)
      return {ErrorCode::InputOutput, "the folder is nested more than 64 deep", path};
    MOERT_ASSIGN_OR_RETURN(Folder opened, Folder::open(path));
    MOERT_ASSIGN_OR_RETURN(std::vector<std::string> names, opened.list());
    for (const std::string &name : names)
      MOERT_RETURN_IF_ERROR(walk(joinPath(path, name), depth + 1, act));
  }
  return act(path, folder);
}

} // namespace

Status makeFolder(const std::string &path) {
  if (mkdir(path.c_str(), 0777) == 0)
    return {};
  struct stat info;
  if (errno == EEXIST && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return {};
  return writeError("cannot create the folder", path);
}

Status removeAll(const std::string &path) {
  return walk(path, 0, [](const std::string &each, bool folder) -> Status {
    if ((folder ? rmdir(each.c_str()) : unlink(each.c_str())) != 0 && errno != ENOENT)
      return writeError("cannot remove", each);
    return {};
  });
}

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  std::string temporary = temporaryName(path);
  int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (fd < 0)
    return writeError("cannot create a file", temporary);
  return AtomicFile(fd, std::move(temporary), path);
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : fd(std::exchange(other.fd, -1)), temporary(std::move(other.temporary)),
      target(std::move(other.target)) {}

AtomicFile::~AtomicFile() {
  if (fd < 0)
    return;
  close(fd);
  unlink(temporary.c_str());
}

Status AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t done = ::write(fd, bytes.data(), bytes.size());
    if (done < 0) {
      if (errno == EINTR)
        continue;
      return writeError("cannot write", target);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  return {};
}

Status AtomicFile::write(std::string_view text) { return write(std::as_bytes(std::span(text))); }

Status AtomicFile::commit() {
  if (fsync(fd) != 0)
    return writeError("cannot sync", target);
  if (rename(temporary.c_str(), target.c_str()) != 0)
    return writeError("cannot rename to its final name", target);
  close(std::exchange(fd, -1));
  return syncFolder(std::string(parentPath(target)));
}

Status writeFileAtomic(const std::string &path, std::string_view content) {
  MOERT_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  MOERT_RETURN_IF_ERROR(file.write(content));
  return file.commit();
}

Result<AtomicFolder> AtomicFolder::create(const std::string &target) {
  std::string temporary = temporaryName(target);
  if (mkdir(temporary.c_str(), 0777) != 0)
    return writeError("cannot create a folder", temporary);
  return AtomicFolder(std::move(temporary), target);
}

AtomicFolder::AtomicFolder(AtomicFolder &&other) noexcept
    : temporary(std::exchange(other.temporary, {})), target(std::move(other.target)) {}

AtomicFolder::~AtomicFolder() {
  if (!temporary.empty())
    (void)removeAll(temporary);
}

Status AtomicFolder::commit(const std::function<bool(const std::string &existing)> &replaceable) {
  MOERT_RETURN_IF_ERROR(walk(temporary, 0, [](const std::string &each, bool folder) -> Status {
    if (folder)
      return syncFolder(each);
    int fd = open(each.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
      return writeError("cannot open", each);
    int failed = fsync(fd);
    close(fd);
    return failed ? writeError("cannot sync", each) : Status();
  }));
  std::string old;
  if (fileExists(target)) {
    if (!replaceable(target))
      return {ErrorCode::InputOutput, "something else is already there and is not replaced", target,
              "remove it or choose another name"};
    old = temporaryName(target);
    if (rename(target.c_str(), old.c_str()) != 0)
      return writeError("cannot move the old folder aside", target);
  }
  if (rename(temporary.c_str(), target.c_str()) != 0) {
    Status status = writeError("cannot rename to its final name", target);
    if (!old.empty())
      (void)rename(old.c_str(), target.c_str());
    return status;
  }
  temporary.clear();
  MOERT_RETURN_IF_ERROR(syncFolder(std::string(parentPath(target))));
  return old.empty() ? Status() : removeAll(old);
}

} // namespace moert
