// Reads the header of a safetensors file: u64 length, JSON, then the data.
//
// A file is accepted only if the tensors' bytes cover the data exactly: every range as long as its
// shape and type ask, none overlapping another, no gap, none beyond the end. A tensor of an unknown
// type may lie among the others: whether it matters is for the reader to say. All problems of a
// file are reported together.
#ifndef MOERT_BASE_SAFETENSORS_H
#define MOERT_BASE_SAFETENSORS_H

#include "runtime/base/ElementType.h"
#include "runtime/base/File.h"
#include "runtime/base/Sha256.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moert {

struct SafetensorsTensor {
  std::string name;
  ElementType type = ElementType::Unspecified; // of a name that is not known, too
  std::string typeName;                        // as the file has it
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0; // from the start of the file
  std::uint64_t bytes = 0;
};

class SafetensorsFile {
public:
  static constexpr std::uint64_t longestHeader = 100'000'000; // the format's own limit

  static Result<SafetensorsFile> open(File file);

  const File &file() const { return source; }
  // Sorted by name.
  const std::vector<SafetensorsTensor> &tensors() const { return entries; }
  const SafetensorsTensor *find(std::string_view name) const; // null when there is none
  const std::map<std::string, std::string> &metadata() const { return meta; }
  // The prefix of the file before the data (length field and JSON), and its digest.
  std::uint64_t headerBytes() const { return prefixBytes; }
  const Sha256Digest &headerDigest() const { return prefixDigest; }

  // Fills `bytes`, which must have tensor.bytes bytes.
  Status read(const SafetensorsTensor &tensor, std::span<std::byte> bytes) const;

private:
  explicit SafetensorsFile(File file) : source(std::move(file)) {}
  File source;
  std::vector<SafetensorsTensor> entries;
  std::map<std::string, std::string> meta;
  std::uint64_t prefixBytes = 0;
  Sha256Digest prefixDigest = {};
};

} // namespace moert

#endif
