// A bundle on disk: its manifest, read and fully checked, and the files that it refers to. Opening
// loads no code and reads no weights.
#ifndef MOERT_BUNDLE_BUNDLE_H
#define MOERT_BUNDLE_BUNDLE_H

#include "runtime/abi/bundle.pb.h"
#include "runtime/base/ElementType.h"
#include "runtime/base/File.h"
#include "runtime/base/Sha256.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moert {

inline constexpr std::uint32_t bundleFormatVersion = 1;
inline constexpr std::string_view manifestName = "manifest.moeb";

// Called now and then from the working thread with what is done and what there is to do, in bytes.
using ByteProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

struct OpenOptions {
  // Where to look for referenced weight files (those not inside the bundle) instead of where the
  // manifest says: by base name, or, where two files share one, by their last two path parts.
  // Empty: where the manifest says.
  std::string weightsFolder = {};
  // Without it, weight files are neither opened nor checked, and the model cannot be loaded: enough
  // to look at a manifest whose weights are elsewhere.
  bool openWeightFiles = true;
};

// Immutable and safe to share between threads.
class Bundle {
public:
  // Reads and checks the manifest (every index, expression, name, path and size in it), that the
  // bundle's files have their sizes, and that referenced weight files have their sizes and headers.
  static Result<std::shared_ptr<const Bundle>> open(const std::string &path,
                                                    const OpenOptions &options = {});

  const std::string &path() const { return folder.path(); }
  const moec::bundle::Manifest &manifest() const { return content; }
  const Sha256Digest &digest() const { return manifestDigest; } // of the manifest's payload

  // The content of one of Manifest.files, its digest checked.
  Result<std::string> readFile(std::string_view path) const;

  bool hasWeightFiles() const { return weightFilesOpen; }
  // Fills `bytes` (exactly the weight's size) with weight `index` of the manifest.
  Status readWeight(std::uint32_t index, std::span<std::byte> bytes) const;
  // `bytes` from `offset` within the weight on.
  Status readWeightPart(std::uint32_t index, std::uint64_t offset,
                        std::span<std::byte> bytes) const;
  // Where weight file `index` was found.
  std::string weightFilePath(std::uint32_t index) const;

  // Reads every byte of the bundle's files and of the weights and compares all digests; names each
  // file and tensor that differs. `unchecked`, if not null, receives the number of weights that
  // carry no digest.
  Status verify(const ByteProgress &progress = {}, std::uint64_t *unchecked = nullptr) const;

private:
  explicit Bundle(Folder folder) : folder(std::move(folder)) {}
  Folder folder;
  moec::bundle::Manifest content;
  Sha256Digest manifestDigest = {};
  bool weightFilesOpen = false;
  std::vector<File> weightFiles;
};

// Writes `folder`/manifest.moeb with its framing: atomically, deterministically, and only if
// validateManifest finds nothing.
Status writeManifest(const std::string &folder, const moec::bundle::Manifest &manifest);

// Everything that can be checked without the files: what Bundle::open checks in a manifest. `place`
// is for messages.
Status validateManifest(const moec::bundle::Manifest &manifest, std::string_view place);

inline ElementType elementType(moec::bundle::ElementType type) {
  return static_cast<ElementType>(type);
}

} // namespace moert

#endif
