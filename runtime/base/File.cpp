#include "runtime/base/File.h"

#include "runtime/base/CheckedMath.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace moert {

namespace {

Status systemError(const std::string &what, const std::string &path, int error) {
  ErrorCode code =
      error == ENOENT || error == ENOTDIR ? ErrorCode::NotFound : ErrorCode::InputOutput;
  return {code, what + ": " + std::strerror(error), path};
}

// NONBLOCK, or a FIFO in the place of a file would block for ever.
constexpr int readFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

// For kernels before 5.6 and sandboxes that forbid openat2: one part at a time, following nothing.
int openBeneathByWalking(int folder, std::string_view relative) {
  int current = folder;
  while (true) {
    std::size_t slash = relative.find('/');
    bool last = slash == std::string_view::npos;
    std::string part(relative.substr(0, slash));
    int flags = readFlags | O_NOFOLLOW | (last ? 0 : O_DIRECTORY);
    int next = openat(current, part.c_str(), flags);
    int error = errno;
    if (current != folder)
      close(current);
    errno = error;
    if (next < 0 || last)
      return next;
    current = next;
    relative.remove_prefix(slash + 1);
  }
}

int openBeneath(int folder, std::string_view relative) {
  open_how how = {};
  how.flags = readFlags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  int fd = static_cast<int>(
      syscall(SYS_openat2, folder, std::string(relative).c_str(), &how, sizeof how));
  if (fd < 0 && (errno == ENOSYS || errno == EPERM))
    return openBeneathByWalking(folder, relative);
  return fd;
}

} // namespace

Result<File> File::open(const std::string &path) {
  if (path.find('\0') != std::string::npos)
    return Status(ErrorCode::InvalidArgument, "a path contains a NUL byte", inQuotes(path));
  int fd = ::open(path.c_str(), readFlags);
  if (fd < 0)
    return systemError("cannot open the file", path, errno);
  return fromDescriptor(fd, path);
}

Result<File> File::fromDescriptor(int descriptor, std::string name) {
  struct stat info;
  if (fstat(descriptor, &info) != 0) {
    int error = errno;
    close(descriptor);
    return systemError("cannot read the file's size", name, error);
  }
  if (!S_ISREG(info.st_mode)) {
    close(descriptor);
    return Status(ErrorCode::InvalidData,
                  S_ISDIR(info.st_mode) ? "expected a file, found a folder"
                                        : "expected a regular file, found something else",
                  std::move(name));
  }
  return File(descriptor, std::move(name), static_cast<std::uint64_t>(info.st_size));
}

File::File(File &&other) noexcept
    : fd(std::exchange(other.fd, -1)), displayName(std::move(other.displayName)),
      length(other.length) {}

File &File::operator=(File &&other) noexcept {
  std::swap(fd, other.fd);
  std::swap(displayName, other.displayName);
  std::swap(length, other.length);
  return *this;
}

File::~File() {
  if (fd >= 0)
    close(fd);
}

Status File::readAt(std::span<std::byte> bytes, std::uint64_t offset) const {
  std::uint64_t end;
  if (!checkedAdd<std::uint64_t>(offset, bytes.size(), end) || end > INT64_MAX)
    return {ErrorCode::InvalidData,
            "a read at offset " + std::to_string(offset) + " of " + std::to_string(bytes.size()) +
                " bytes lies beyond any file",
            displayName};
  std::size_t done = 0;
  while (done < bytes.size()) {
    // Linux moves at most 2 GiB a call; smaller pieces keep signals and cancellation responsive.
    std::size_t piece = std::min<std::size_t>(bytes.size() - done, std::size_t(1) << 30);
    ssize_t got = pread(fd, bytes.data() + done, piece, static_cast<off_t>(offset + done));
    if (got < 0) {
      if (errno == EINTR)
        continue;
      return systemError("cannot read", displayName, errno);
    }
    if (got == 0)
      return {ErrorCode::InvalidData,
              "the file is truncated: expected " + std::to_string(bytes.size()) +
                  " bytes at offset " + std::to_string(offset) + ", found " + std::to_string(done),
              displayName};
    done += static_cast<std::size_t>(got);
  }
  return {};
}

Result<std::string> File::readAll(std::uint64_t limit) const {
  if (length > limit)
    return Status(ErrorCode::InvalidData,
                  "the file has " + std::to_string(length) + " bytes; at most " +
                      std::to_string(limit) + " are accepted",
                  displayName);
  std::string content(length, '\0');
  MOERT_RETURN_IF_ERROR(readAt(std::as_writable_bytes(std::span(content)), 0));
  return content;
}

Result<Folder> Folder::open(const std::string &path, Links links) {
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return systemError("cannot open the folder", path, errno);
  return Folder(fd, path, links);
}

Folder::Folder(Folder &&other) noexcept
    : fd(std::exchange(other.fd, -1)), displayPath(std::move(other.displayPath)),
      links(other.links) {}

Folder &Folder::operator=(Folder &&other) noexcept {
  std::swap(fd, other.fd);
  std::swap(displayPath, other.displayPath);
  std::swap(links, other.links);
  return *this;
}

Folder::~Folder() {
  if (fd >= 0)
    close(fd);
}

Result<File> Folder::openFile(std::string_view relative) const {
  if (std::string problem = relativePathProblem(relative); !problem.empty())
    return Status(ErrorCode::InvalidData, "the path " + inQuotes(relative) + " " + problem,
                  displayPath, "files are opened only below the folder");
  std::string name = joinPath(displayPath, relative);
  int file = links == Links::Allow ? openat(fd, std::string(relative).c_str(), readFlags)
                                   : openBeneath(fd, relative);
  if (file < 0) {
    int error = errno;
    if (error == ELOOP && links == Links::Refuse)
      return Status(ErrorCode::InvalidData, "symbolic links are not followed here", name,
                    "copy the file to its place");
    return systemError("cannot open the file", name, error);
  }
  return File::fromDescriptor(file, std::move(name));
}

bool Folder::contains(std::string_view relative) const { return openFile(relative).isOk(); }

Result<std::vector<std::string>> Folder::list() const {
  // A duplicate of `fd` would share its position; a new descriptor starts at the beginning.
  int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *directory = copy < 0 ? nullptr : fdopendir(copy);
  if (!directory) {
    int error = errno;
    if (copy >= 0)
      close(copy);
    return systemError("cannot list the folder", displayPath, error);
  }
  std::vector<std::string> names;
  while (dirent *entry = readdir(directory)) {
    std::string_view name = entry->d_name;
    if (name != "." && name != "..")
      names.emplace_back(name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

std::string relativePathProblem(std::string_view path) {
  if (path.empty())
    return "is empty";
  if (path.size() > 4096)
    return "is longer than 4096 bytes";
  if (path.find('\0') != std::string_view::npos)
    return "contains a NUL byte";
  if (path.find('\\') != std::string_view::npos)
    return "contains a backslash";
  if (path.front() == '/')
    return "is absolute";
  while (true) {
    std::size_t slash = path.find('/');
    std::string_view part = path.substr(0, slash);
    if (part.empty())
      return "has an empty part";
    if (part == ".." || part == ".")
      return "has a part '" + std::string(part) + "'";
    if (slash == std::string_view::npos)
      return "";
    path.remove_prefix(slash + 1);
  }
}

std::string joinPath(std::string_view folder, std::string_view path) {
  if (folder.empty() || (!path.empty() && path.front() == '/'))
    return std::string(path);
  std::string joined(folder);
  if (joined.back() != '/')
    joined += '/';
  return joined += path;
}

std::string_view baseName(std::string_view path) {
  while (path.size() > 1 && path.back() == '/')
    path.remove_suffix(1);
  std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view parentPath(std::string_view path) {
  while (path.size() > 1 && path.back() == '/')
    path.remove_suffix(1);
  std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos)
    return ".";
  return slash == 0 ? path.substr(0, 1) : path.substr(0, slash);
}

bool fileExists(const std::string &path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

} // namespace moert
