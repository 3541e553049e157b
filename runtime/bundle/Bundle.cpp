#include "runtime/bundle/Bundle.h"

#include "runtime/base/CheckedMath.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

namespace moert {

using moec::bundle::Manifest;

namespace {

constexpr char magic[4] = {'M', 'O', 'E', 'B'};
constexpr std::size_t frameBytes = sizeof magic + 4 + 8 + 32;
// A manifest grows by some 200 bytes a weight; a million weights fit.
constexpr std::uint64_t largestManifest = std::uint64_t(256) << 20;

std::uint64_t littleEndian(const char *bytes, unsigned count) {
  std::uint64_t value = 0;
  for (unsigned i = count; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

void appendLittleEndian(std::string &text, std::uint64_t value, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    text += static_cast<char>(value >> (8 * i));
}

bool equals(const std::string &stored, const Sha256Digest &digest) {
  return stored.size() == digest.size() &&
         std::memcmp(stored.data(), digest.data(), digest.size()) == 0;
}

// Checks the framing and parses the payload.
Status readManifest(const File &file, Manifest &manifest, Sha256Digest &digest) {
  MOERT_ASSIGN_OR_RETURN(std::string content, file.readAll(largestManifest + frameBytes));
  auto damaged = [&](std::string message) {
    return Status(ErrorCode::InvalidData, std::move(message), file.name(),
                  "compile the model again, or copy the bundle again");
  };
  if (content.size() < frameBytes || std::memcmp(content.data(), magic, sizeof magic) != 0)
    return damaged("no bundle manifest: it does not begin with 'MOEB' and a header of " +
                   std::to_string(frameBytes) + " bytes");
  std::uint64_t version = littleEndian(content.data() + 4, 4);
  if (version == 0 || version > bundleFormatVersion)
    return Status(ErrorCode::Unsupported,
                  "bundle format " + std::to_string(version) + "; this runtime reads 1 to " +
                      std::to_string(bundleFormatVersion),
                  file.name(), "use a newer runtime");
  std::uint64_t length = littleEndian(content.data() + 8, 8);
  std::string_view payload = std::string_view(content).substr(frameBytes);
  if (length != payload.size())
    return damaged("the manifest is truncated or too long: expected " + std::to_string(length) +
                   " bytes after the header, found " + std::to_string(payload.size()));
  digest = sha256(payload);
  if (std::memcmp(content.data() + 16, digest.data(), digest.size()) != 0)
    return damaged("the manifest does not have the digest that its header states: it was changed");
  // What is wrong is said in our own words, not on the standard error stream.
  google::protobuf::LogSilencer silencer;
  google::protobuf::io::ArrayInputStream array(payload.data(), static_cast<int>(payload.size()));
  google::protobuf::io::CodedInputStream input(&array);
  // The schema nests 7 deep.
  input.SetRecursionLimit(16);
  if (!manifest.ParseFromCodedStream(&input) || !input.ConsumedEntireMessage())
    return damaged("the manifest is no valid protobuf message");
  return {};
}

// Where to look for referenced weight files below --weights.
class WeightsFolder {
public:
  WeightsFolder(const Manifest &manifest, const std::string &folder) : folder(folder) {
    for (const moec::bundle::WeightFile &file : manifest.weight_files())
      if (!file.inside())
        ++uses[std::string(baseName(file.path()))];
  }
  std::string locate(const std::string &path) const {
    std::string name(baseName(path));
    if (uses.at(name) > 1)
      name = joinPath(baseName(parentPath(path)), name);
    return joinPath(folder, name);
  }

private:
  const std::string &folder;
  std::unordered_map<std::string, unsigned> uses;
};

// Size and header of a weight file against the manifest.
void checkWeightFile(const File &file, const moec::bundle::WeightFile &expected,
                     Problems &problems) {
  if (file.size() != expected.bytes()) {
    problems.add(file.name() + ": expected " + std::to_string(expected.bytes()) + " bytes, found " +
                 std::to_string(file.size()));
    return;
  }
  if (expected.header_bytes() == 0)
    return;
  Result<Sha256Digest> digest = sha256(file, 0, expected.header_bytes());
  if (!digest.isOk())
    problems.add(digest.status().toString());
  else if (!equals(expected.header_sha256(), *digest))
    problems.add(file.name() + ": its header is not the one that the model was compiled from");
}

} // namespace

Result<std::shared_ptr<const Bundle>> Bundle::open(const std::string &path,
                                                   const OpenOptions &options) {
  MOERT_ASSIGN_OR_RETURN(Folder folder, Folder::open(path));
  std::shared_ptr<Bundle> bundle(new Bundle(std::move(folder)));
  Result<moert::File> manifestFile = bundle->folder.openFile(manifestName);
  if (!manifestFile.isOk())
    return Status(manifestFile.status().code(), manifestFile.status().message(),
                  manifestFile.status().location(), "expected a folder that moec compile wrote");
  MOERT_RETURN_IF_ERROR(readManifest(*manifestFile, bundle->content, bundle->manifestDigest));
  const Manifest &manifest = bundle->content;
  MOERT_RETURN_IF_ERROR(validateManifest(manifest, manifestFile->name()));

  Problems problems(path);
  for (const moec::bundle::File &expected : manifest.files()) {
    Result<moert::File> file = bundle->folder.openFile(expected.path());
    if (!file.isOk())
      problems.add(file.status().toString());
    else if (file->size() != expected.bytes())
      problems.add(expected.path() + ": expected " + std::to_string(expected.bytes()) +
                   " bytes, found " + std::to_string(file->size()));
  }
  MOERT_RETURN_IF_ERROR(
      problems.toStatus(ErrorCode::InvalidData, "copy or compile the bundle again"));
  if (!options.openWeightFiles)
    return std::shared_ptr<const Bundle>(std::move(bundle));

  WeightsFolder elsewhere(manifest, options.weightsFolder);
  for (const moec::bundle::WeightFile &expected : manifest.weight_files()) {
    Result<moert::File> file = expected.inside() ? bundle->folder.openFile(expected.path())
                               : options.weightsFolder.empty()
                                   ? moert::File::open(joinPath(path, expected.path()))
                                   : moert::File::open(elsewhere.locate(expected.path()));
    if (!file.isOk()) {
      problems.add(file.status().toString());
      continue;
    }
    checkWeightFile(*file, expected, problems);
    bundle->weightFiles.push_back(*std::move(file));
  }
  MOERT_RETURN_IF_ERROR(problems.toStatus(
      ErrorCode::InvalidData, "if the weights were moved, say where they are: --weights FOLDER"));
  bundle->weightFilesOpen = true;
  return std::shared_ptr<const Bundle>(std::move(bundle));
}

Result<std::string> Bundle::readFile(std::string_view path) const {
  auto expected = std::find_if(content.files().begin(), content.files().end(),
                               [&](const auto &each) { return each.path() == path; });
  if (expected == content.files().end())
    return Status(ErrorCode::NotFound, "the bundle lists no file " + inQuotes(path), folder.path());
  MOERT_ASSIGN_OR_RETURN(moert::File file, folder.openFile(path));
  if (file.size() != expected->bytes())
    return Status(ErrorCode::InvalidData,
                  "expected " + std::to_string(expected->bytes()) + " bytes, found " +
                      std::to_string(file.size()),
                  file.name());
  MOERT_ASSIGN_OR_RETURN(std::string text, file.readAll(expected->bytes()));
  if (!equals(expected->sha256(), sha256(text)))
    return Status(ErrorCode::InvalidData,
                  "the file does not have the digest that the manifest states: it was changed",
                  file.name(), "copy or compile the bundle again");
  return text;
}

Status Bundle::readWeight(std::uint32_t index, std::span<std::byte> bytes) const {
  if (index < static_cast<std::uint32_t>(content.weights_size()) &&
      bytes.size() != content.weights(static_cast<int>(index)).bytes())
    return {ErrorCode::InvalidArgument,
            "weight " + inQuotes(content.weights(static_cast<int>(index)).name()) + " has " +
                std::to_string(content.weights(static_cast<int>(index)).bytes()) +
                " bytes, the buffer " + std::to_string(bytes.size())};
  return readWeightPart(index, 0, bytes);
}

Status Bundle::readWeightPart(std::uint32_t index, std::uint64_t offset,
                              std::span<std::byte> bytes) const {
  if (index >= static_cast<std::uint32_t>(content.weights_size()))
    return {ErrorCode::InvalidArgument,
            "weight " + std::to_string(index) + " of " + std::to_string(content.weights_size())};
  if (!weightFilesOpen)
    return {ErrorCode::WrongState, "the bundle was opened without its weight files", path()};
  const moec::bundle::Weight &weight = content.weights(static_cast<int>(index));
  if (!rangeFits(offset, bytes.size(), weight.bytes()))
    return {ErrorCode::InvalidArgument,
            "a read beyond the end of weight " + inQuotes(weight.name())};
  return weightFiles[weight.file()]
      .readAt(bytes, weight.offset() + offset)
      .at("tensor " + inQuotes(weight.name()));
}

std::string Bundle::weightFilePath(std::uint32_t index) const {
  return index < weightFiles.size() ? weightFiles[index].name() : std::string();
}

Status Bundle::verify(const ByteProgress &progress, std::uint64_t *unchecked) const {
  Problems problems(path());
  std::uint64_t total = 0, done = 0, without = 0;
  for (const moec::bundle::File &file : content.files())
    total += file.bytes();
  // Sizes were checked against real files; the sum cannot wrap before a wrong total would matter to
  // anybody.
  if (weightFilesOpen)
    for (const moec::bundle::Weight &weight : content.weights())
      total += weight.bytes();
  auto advance = [&](std::uint64_t bytes) {
    done += bytes;
    if (progress)
      progress(done, total);
  };
  for (const moec::bundle::File &file : content.files()) {
    if (Result<std::string> text = readFile(file.path()); !text.isOk())
      problems.add(text.status().toString());
    advance(file.bytes());
  }
  if (!weightFilesOpen)
    problems.add("the bundle was opened without its weight files; they cannot be verified");
  for (std::size_t i = 0; i < weightFiles.size(); ++i)
    checkWeightFile(weightFiles[i], content.weight_files(static_cast<int>(i)), problems);
  for (int i = 0; weightFilesOpen && i < content.weights_size(); ++i) {
    const moec::bundle::Weight &weight = content.weights(i);
    const moert::File &file = weightFiles[weight.file()];
    if (weight.sha256().empty()) {
      ++without;
    } else {
      Result<Sha256Digest> digest = sha256(file, weight.offset(), weight.bytes());
      if (!digest.isOk())
        problems.add("tensor " + inQuotes(weight.name()) + ": " + digest.status().toString());
      else if (!equals(weight.sha256(), *digest))
        problems.add("tensor " + inQuotes(weight.name()) + " in " + file.name() +
                     ": its bytes are not those that the model was compiled with");
    }
    advance(weight.bytes());
  }
  if (unchecked)
    *unchecked = without;
  return problems.toStatus(ErrorCode::InvalidData);
}

Status writeManifest(const std::string &folder, const Manifest &manifest) {
  std::string place = joinPath(folder, manifestName);
  MOERT_RETURN_IF_ERROR(validateManifest(manifest, place));
  std::size_t size = manifest.ByteSizeLong();
  if (size > largestManifest)
    return {ErrorCode::InvalidArgument,
            "the manifest would have " + std::to_string(size) + " bytes; at most " +
                std::to_string(largestManifest) + " are possible",
            place};
  std::string payload;
  {
    google::protobuf::io::StringOutputStream stream(&payload);
    google::protobuf::io::CodedOutputStream output(&stream);
    // Without maps the order of fields is fixed; this states the intent.
    output.SetSerializationDeterministic(true);
    if (!manifest.SerializeToCodedStream(&output))
      return {ErrorCode::Internal, "the manifest could not be serialised", place};
  }
  std::string content(magic, sizeof magic);
  appendLittleEndian(content, bundleFormatVersion, 4);
  appendLittleEndian(content, payload.size(), 8);
  Sha256Digest digest = sha256(payload);
  content.append(reinterpret_cast<const char *>(digest.data()), digest.size());
  return writeFileAtomic(place, content + payload);
}

} // namespace moert
