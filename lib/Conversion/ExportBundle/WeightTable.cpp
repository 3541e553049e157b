#include "WeightTable.h"

#include "ManifestProgram.h"

#include "runtime/base/Sha256.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <filesystem>

using namespace mlir;
using namespace mlir::moec;
namespace bundle = ::moec::bundle;

static LogicalResult report(Location loc, const moert::Status &status) {
  if (status.isOk())
    return success();
  return emitError(loc) << status.toString();
}

static std::string toBytes(const moert::Sha256Digest &digest) {
  return std::string(reinterpret_cast<const char *>(digest.data()), digest.size());
}

FailureOr<unsigned> WeightTable::addFile(Location loc, StringRef name) {
  auto known = fileIndices.find(name.str());
  if (known != fileIndices.end())
    return known->second;
  // Checkpoint folders of download caches consist of links; ONNX files were checked when they were
  // imported.
  auto folder = moert::Folder::open(root, moert::Links::Allow);
  if (!folder.isOk())
    return report(loc, folder.status());
  auto file = folder->openFile(name.str());
  if (!file.isOk())
    return report(loc, file.status());
  SourceFile source{name.str(), *std::move(file), 0};
  if (name.ends_with(".safetensors")) {
    // The length of the JSON header, and the header itself, which the importer has checked.
    uint8_t length[8];
    if (failed(report(loc, source.file.readAt(std::as_writable_bytes(std::span(length)), 0))))
      return failure();
    uint64_t header = llvm::support::endian::read64le(length);
    if (header > source.file.size() - 8)
      return emitError(loc) << name << ": the header's length, " << header
                            << ", lies beyond the file's " << source.file.size() << " bytes";
    source.headerBytes = header + 8;
  }
  unsigned index = files.size();
  fileIndices[name.str()] = index;
  files.push_back(std::move(source));
  return index;
}

FailureOr<unsigned> WeightTable::add(plan::WeightOp op) {
  ArrayAttr moreNames = op.getMoreNamesAttr(), moreRefs = op.getMoreRefsAttr();
  auto [known, isNew] = weightIndices.try_emplace(
      {op.getNameAttr().getAsOpaquePointer(), op.getRef().getAsOpaquePointer(),
       moreRefs.getAsOpaquePointer()},
      weights.size());
  if (!isNew)
    return known->second;
  unsigned first = known->second;
  if (failed(addTensor(op, op.getName(), op.getRef())))
    return failure();
  if (!moreNames)
    return first;
  for (auto [name, ref] : llvm::zip_equal(moreNames, moreRefs))
    if (failed(addTensor(op, cast<StringAttr>(name).getValue(), cast<moe::WeightRefAttr>(ref))))
      return failure();
  weights[first].set_joined(moreNames.size());
  return first;
}

LogicalResult WeightTable::addTensor(plan::WeightOp op, StringRef name, moe::WeightRefAttr ref) {
  FailureOr<unsigned> file = addFile(op.getLoc(), ref.getFile());
  if (failed(file))
    return failure();
  uint64_t end;
  if (__builtin_add_overflow(ref.getOffset(), ref.getBytes(), &end) ||
      end > files[*file].file.size())
    return op.emitOpError() << "'" << name << "' needs bytes [" << ref.getOffset() << ", "
                            << ref.getOffset() + ref.getBytes() << ") of " << ref.getFile()
                            << ", which has " << files[*file].file.size();
  auto type = cast<RankedTensorType>(op.getType());
  FailureOr<bundle::ElementType> element = convertElementType(op.getLoc(), type.getElementType());
  if (failed(element))
    return failure();
  bundle::Weight weight;
  weight.set_name(name.str());
  weight.set_file(*file);
  weight.set_offset(ref.getOffset());
  weight.set_bytes(ref.getBytes());
  weight.set_type(*element);
  if (op.getMoreNamesAttr()) {
    // The shapes of the single tensors are the checkpoint's; here they are numbers in a row.
    unsigned bits = type.getElementTypeBitWidth();
    if (ref.getBytes() * 8 % bits != 0)
      return op.emitOpError() << "'" << name << "' has " << ref.getBytes()
                              << " bytes, which is no whole number of " << type.getElementType();
    weight.add_shape(ref.getBytes() * 8 / bits);
  } else {
    for (int64_t size : type.getShape())
      weight.add_shape(size);
  }
  weights.push_back(std::move(weight));
  return success();
}

LogicalResult WeightTable::addDigests(Location loc) {
  for (bundle::Weight &weight : weights) {
    auto digest = moert::sha256(files[weight.file()].file, weight.offset(), weight.bytes());
    if (!digest.isOk())
      return report(loc, digest.status());
    weight.set_sha256(toBytes(*digest));
  }
  return success();
}

/// `path` as seen from `folder`, when both lie below a common folder other than the root; else as
/// it is.
static std::string makeReference(StringRef path, StringRef folder) {
  std::filesystem::path target(path.str()), from(folder.str());
  auto targetPart = target.begin(), fromPart = from.begin();
  unsigned common = 0;
  while (targetPart != target.end() && fromPart != from.end() && *targetPart == *fromPart)
    ++targetPart, ++fromPart, ++common;
  if (common < 2) // the first part is "/"
    return path.str();
  return target.lexically_relative(from).generic_string();
}

void WeightTable::refer(Location loc, StringRef bundlePath, bundle::Manifest &manifest) {
  SmallString<256> folder(bundlePath);
  llvm::sys::fs::make_absolute(folder);
  llvm::sys::path::remove_dots(folder, /*remove_dot_dot=*/true);
  for (SourceFile &source : files) {
    SmallString<256> path(root);
    llvm::sys::path::append(path, source.name);
    llvm::sys::fs::make_absolute(path);
    llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
    bundle::WeightFile &file = *manifest.add_weight_files();
    file.set_path(makeReference(path, folder));
    file.set_bytes(source.file.size());
    if (source.headerBytes == 0)
      continue;
    file.set_header_bytes(source.headerBytes);
    auto digest = moert::sha256(source.file, 0, source.headerBytes);
    if (digest.isOk())
      file.set_header_sha256(toBytes(*digest));
  }
}

LogicalResult WeightTable::copy(Location loc, StringRef folder, bundle::Manifest &manifest) {
  // One safetensors file with the used weights, each aligned to 64 bytes as far as the format's
  // gapless data allows: the widest elements come first, so that every weight is aligned to its
  // element.
  std::vector<unsigned> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  auto elementBytes = [&](unsigned index) {
    const bundle::Weight &weight = weights[index];
    uint64_t elements = 1;
    for (int64_t size : weight.shape())
      elements *= size;
    return elements == 0 ? 1 : std::max<uint64_t>(1, weight.bytes() / elements);
  };
  llvm::stable_sort(order,
                    [&](unsigned a, unsigned b) { return elementBytes(a) > elementBytes(b); });
  static constexpr llvm::StringLiteral fileName = "weights.bin";
  SmallString<256> path(folder);
  llvm::sys::path::append(path, fileName);
  auto output = moert::AtomicFile::create(path.str().str());
  if (!output.isOk())
    return report(loc, output.status());
  uint64_t offset = 0;
  std::vector<std::byte> piece;
  for (unsigned index : order) {
    bundle::Weight &weight = weights[index];
    const moert::File &source = files[weight.file()].file;
    moert::Sha256 digest;
    for (uint64_t done = 0; done < weight.bytes();) {
      piece.resize(std::min<uint64_t>(weight.bytes() - done, 1 << 22));
      if (failed(report(loc, source.readAt(piece, weight.offset() + done))) ||
          failed(report(loc, output->write(piece))))
        return failure();
      digest.update(piece);
      done += piece.size();
    }
    weight.set_sha256(toBytes(digest.finish()));
    weight.set_file(0);
    weight.set_offset(offset);
    offset += weight.bytes();
  }
  if (failed(report(loc, output->commit())))
    return failure();
  bundle::WeightFile &file = *manifest.add_weight_files();
  file.set_path(("weights/" + fileName).str());
  file.set_inside(true);
  file.set_bytes(offset);
  return success();
}

LogicalResult WeightTable::write(Location loc, StringRef bundlePath, StringRef copyTo,
                                 uint64_t digestLimit, bundle::Manifest &manifest) {
  if (!copyTo.empty()) {
    if (failed(copy(loc, copyTo, manifest)))
      return failure();
  } else {
    uint64_t total = 0;
    for (const bundle::Weight &weight : weights)
      total = llvm::SaturatingAdd(total, static_cast<uint64_t>(weight.bytes()));
    if (total <= digestLimit && failed(addDigests(loc)))
      return failure();
    refer(loc, bundlePath, manifest);
  }
  for (bundle::Weight &weight : weights)
    *manifest.add_weights() = weight;
  if (llvm::any_of(weights, [](const bundle::Weight &weight) { return weight.joined() != 0; }))
    manifest.add_required_features("joined-weights");
  return success();
}
