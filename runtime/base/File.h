// Reading files, opening them below one folder only, and writing them atomically.
#ifndef MOERT_BASE_FILE_H
#define MOERT_BASE_FILE_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moert {

// A regular file open for reading. It is read with pread, never mapped: when somebody truncates it
// meanwhile, a read gives an error instead of a signal.
class File {
public:
  // Follows symbolic links. For files whose path the user typed; a path that comes from a file goes
  // through Folder.
  static Result<File> open(const std::string &path);
  // Takes over `descriptor`. `name` is for messages.
  static Result<File> fromDescriptor(int descriptor, std::string name);

  File(File &&other) noexcept;
  File &operator=(File &&other) noexcept;
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  ~File();

  const std::string &name() const { return displayName; }
  std::uint64_t size() const { return length; } // when it was opened
  int descriptor() const { return fd; }

  // Fills `bytes` from `offset` on; anything less is an error. Safe from several threads.
  Status readAt(std::span<std::byte> bytes, std::uint64_t offset) const;
  // The whole file, refused when larger than `limit` bytes.
  Result<std::string> readAll(std::uint64_t limit) const;

private:
  File(int fd, std::string name, std::uint64_t length)
      : fd(fd), displayName(std::move(name)), length(length) {}
  int fd = -1;
  std::string displayName;
  std::uint64_t length = 0;
};

// What a path below a folder may lead over.
enum class Links {
  Refuse, // no symbolic link anywhere: bundles, ONNX external data
  Allow, // links are followed, wherever they lead: checkpoint folders of download caches consist of
         // links
};

// A folder that confines what is opened by a name from a file: no absolute name, no "..", no
// device, and with Links::Refuse no symbolic link.
class Folder {
public:
  static Result<Folder> open(const std::string &path, Links links = Links::Refuse);

  Folder(Folder &&other) noexcept;
  Folder &operator=(Folder &&other) noexcept;
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  ~Folder();

  const std::string &path() const { return displayPath; }
  Result<File> openFile(std::string_view relative) const;
  bool contains(std::string_view relative) const; // a regular file that openFile would open
  // Names of everything directly in the folder, sorted.
  Result<std::vector<std::string>> list() const;

private:
  Folder(int fd, std::string path, Links links)
      : fd(fd), displayPath(std::move(path)), links(links) {}
  int fd = -1;
  std::string displayPath;
  Links links = Links::Refuse;
};

// Whether `path` is a relative path with forward slashes whose parts are neither empty nor "." nor
// "..", without NUL, of at most 4096 bytes. The reason why not, or empty.
std::string relativePathProblem(std::string_view path);

// "a/b" + "c" -> "a/b/c"; an absolute second path stands alone.
std::string joinPath(std::string_view folder, std::string_view path);
std::string_view baseName(std::string_view path);
std::string_view parentPath(std::string_view path); // "." when there is none

bool fileExists(const std::string &path);   // anything, not only a regular file
Status makeFolder(const std::string &path); // parents must exist; an existing folder is fine
// Deletes a file, or a folder with all that is in it, without following links. Nothing there is
// fine.
Status removeAll(const std::string &path);

// A file written under a temporary name beside its target. commit() syncs and renames it; without
// commit() it vanishes.
class AtomicFile {
public:
  static Result<AtomicFile> create(const std::string &path);
  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text);
  Status commit();

private:
  AtomicFile(int fd, std::string temporary, std::string target)
      : fd(fd), temporary(std::move(temporary)), target(std::move(target)) {}
  int fd = -1;
  std::string temporary;
  std::string target;
};
Status writeFileAtomic(const std::string &path, std::string_view content);

// A folder filled under a temporary name (path()) beside its target. commit() syncs every file in
// it and renames it; a folder that was at the target is moved aside and removed, but only if
// `replaceable` says so. Without commit() it vanishes.
class AtomicFolder {
public:
  static Result<AtomicFolder> create(const std::string &target);
  AtomicFolder(AtomicFolder &&other) noexcept;
  AtomicFolder &operator=(AtomicFolder &&) = delete;
  ~AtomicFolder();

  const std::string &path() const { return temporary; }
  Status commit(const std::function<bool(const std::string &existing)> &replaceable);

private:
  AtomicFolder(std::string temporary, std::string target)
      : temporary(std::move(temporary)), target(std::move(target)) {}
  std::string temporary;
  std::string target;
};

} // namespace moert

#endif
