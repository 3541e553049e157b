#include "runtime/base/Safetensors.h"

#include "runtime/base/CheckedMath.h"
#include "runtime/base/Json.h"

#include <algorithm>
#include <cstring>

namespace moert {

namespace {

// One entry of the header. Complains and gives nothing when it makes no sense by itself.
std::optional<SafetensorsTensor> readEntry(const std::string &name, const JsonView &view,
                                           std::uint64_t prefixBytes, std::uint64_t dataBytes) {
  SafetensorsTensor tensor;
  tensor.name = name;
  JsonView dtype = view["dtype"], shape = view["shape"], range = view["data_offsets"];
  bool sound = true;
  if (auto text = dtype.string()) {
    tensor.type = elementTypeFromSafetensors(*text).value_or(ElementType::Unspecified);
    tensor.typeName = std::move(*text);
  } else {
    sound = false;
  }
  if (!shape)
    sound = false;
  for (const JsonView &dimension : shape.elements()) {
    auto size = dimension.integer(0);
    sound &= size.has_value();
    tensor.shape.push_back(size.value_or(0));
  }
  if (shape && !shape.raw()->is_array())
    sound = false;
  std::vector<JsonView> ends = range.elements();
  if (ends.size() != 2) {
    if (range && range.raw()->is_array())
      range.complain("expected 2 offsets, found " + std::to_string(ends.size()));
    return std::nullopt;
  }
  auto begin = ends[0].integer(0), end = ends[1].integer(0);
  if (!begin || !end || !sound)
    return std::nullopt;
  std::uint64_t first = *begin, last = *end;
  if (first > last || last > dataBytes) {
    range.complain("bytes " + std::to_string(first) + " to " + std::to_string(last) +
                   " do not lie within the " + std::to_string(dataBytes) + " bytes of data");
    return std::nullopt;
  }
  tensor.offset = prefixBytes + first;
  tensor.bytes = last - first;
  if (tensor.type == ElementType::Unspecified)
    return tensor;
  auto wanted = tensorBytes(tensor.type, tensor.shape);
  if (!wanted || *wanted != tensor.bytes) {
    view.complain("shape " + shapeToString(tensor.shape) + " of " +
                  std::string(elementTypeName(tensor.type)) + " takes " +
                  (wanted ? std::to_string(*wanted) : "more than 2^63") +
                  " bytes, but the offsets give " + std::to_string(tensor.bytes));
    return std::nullopt;
  }
  return tensor;
}

// Whether the ranges cover the data exactly once.
void checkCoverage(const std::vector<SafetensorsTensor> &tensors, std::uint64_t prefixBytes,
                   std::uint64_t fileBytes, Problems &problems) {
  std::vector<const SafetensorsTensor *> order;
  for (const SafetensorsTensor &tensor : tensors)
    order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](auto *a, auto *b) {
    return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
  });
  std::uint64_t covered = prefixBytes;
  const SafetensorsTensor *previous = nullptr;
  for (const SafetensorsTensor *tensor : order) {
    if (tensor->offset > covered)
      problems.add("no tensor covers bytes " + std::to_string(covered) + " to " +
                   std::to_string(tensor->offset) + " of the file");
    else if (tensor->offset < covered)
      problems.add("tensors " + inQuotes(previous->name) + " and " + inQuotes(tensor->name) +
                   " overlap");
    if (tensor->offset + tensor->bytes >= covered) {
      covered = tensor->offset + tensor->bytes;
      previous = tensor;
    }
  }
  if (covered < fileBytes)
    problems.add("no tensor covers bytes " + std::to_string(covered) + " to " +
                 std::to_string(fileBytes) + " of the file");
}

} // namespace

Result<SafetensorsFile> SafetensorsFile::open(File opened) {
  SafetensorsFile result(std::move(opened));
  const File &file = result.source;
  std::uint8_t lengthField[8];
  if (file.size() < sizeof lengthField)
    return Status(ErrorCode::InvalidData,
                  "a safetensors file begins with 8 bytes of header length; this file has " +
                      std::to_string(file.size()) + " bytes",
                  file.name());
  MOERT_RETURN_IF_ERROR(file.readAt(std::as_writable_bytes(std::span(lengthField)), 0));
  std::uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | lengthField[i];
  if (length > longestHeader || length > file.size() - sizeof lengthField)
    return Status(ErrorCode::InvalidData,
                  "the header claims " + std::to_string(length) + " bytes, but the file has " +
                      std::to_string(file.size() - sizeof lengthField) +
                      " after the length field (and a header has at most 100000000)",
                  file.name(), "the file is damaged, cut short, or no safetensors file");
  std::string header(length, '\0');
  MOERT_RETURN_IF_ERROR(file.readAt(std::as_writable_bytes(std::span(header)), sizeof lengthField));
  result.prefixBytes = sizeof lengthField + length;
  Sha256 hash;
  hash.update(std::as_bytes(std::span(lengthField)));
  hash.update(std::as_bytes(std::span(header)));
  result.prefixDigest = hash.finish();
  if (header.empty() || header.front() != '{')
    return Status(ErrorCode::InvalidData, "the header does not begin with '{'", file.name());

  MOERT_ASSIGN_OR_RETURN(Json document,
                         parseJson(header, file.name(), {.bytes = longestHeader, .depth = 8}));
  Problems problems(file.name());
  std::uint64_t dataBytes = file.size() - result.prefixBytes;
  for (auto &[name, view] : JsonView(document, problems).members()) {
    if (name == "__metadata__") {
      for (auto &[key, text] : view.members())
        if (auto value = text.string())
          result.meta[key] = *value;
      continue;
    }
    if (auto tensor = readEntry(name, view, result.prefixBytes, dataBytes))
      result.entries.push_back(std::move(*tensor));
  }
  // With an entry missing, gaps would only repeat what was already said.
  if (problems.empty())
    checkCoverage(result.entries, result.prefixBytes, file.size(), problems);
  MOERT_RETURN_IF_ERROR(problems.toStatus(ErrorCode::InvalidData));
  return result;
}

const SafetensorsTensor *SafetensorsFile::find(std::string_view name) const {
  auto place = std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const SafetensorsTensor &tensor, std::string_view key) { return tensor.name < key; });
  return place != entries.end() && place->name == name ? &*place : nullptr;
}

Status SafetensorsFile::read(const SafetensorsTensor &tensor, std::span<std::byte> bytes) const {
  if (bytes.size() != tensor.bytes)
    return {ErrorCode::InvalidArgument,
            "tensor " + inQuotes(tensor.name) + " has " + std::to_string(tensor.bytes) +
                " bytes, the buffer " + std::to_string(bytes.size()),
            source.name()};
  return source.readAt(bytes, tensor.offset).at("tensor " + inQuotes(tensor.name));
}

} // namespace moert
