//===- WireOffsets.cpp - where the data of initialisers lies in an .onnx file
//------------------===//

#include "WireOffsets.h"

namespace mlir::moec::onnx_import {

namespace {
// Field numbers of onnx-ml.proto.
constexpr uint64_t modelGraph = 7, graphInitializer = 5, tensorRawData = 9;

struct Field {
  uint64_t number;
  uint64_t begin, end; // of the content, for length-delimited fields
  bool delimited;
};

/// Reads the fields of one message. The wire format has five kinds of values; groups, which ONNX
/// does not use, end the walk.
class Reader {
public:
  Reader(std::string_view bytes, uint64_t begin, uint64_t end)
      : bytes(bytes), position(begin), end(end) {}

  bool atEnd() const { return position >= end; }

  std::optional<Field> next() {
    std::optional<uint64_t> tag = varint();
    if (!tag)
      return std::nullopt;
    Field field{*tag >> 3, 0, 0, false};
    switch (*tag & 7) {
    case 0:
      return varint() ? std::optional(field) : std::nullopt;
    case 1:
      return skip(8) ? std::optional(field) : std::nullopt;
    case 5:
      return skip(4) ? std::optional(field) : std::nullopt;
    case 2: {
      std::optional<uint64_t> length = varint();
      if (!length)
        return std::nullopt;
      field.delimited = true;
      field.begin = position;
      if (!skip(*length))
        return std::nullopt;
      field.end = position;
      return field;
    }
    default:
      return std::nullopt;
    }
  }

private:
  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && position < end; shift += 7) {
      uint8_t byte = bytes[position++];
      value |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return value;
    }
    return std::nullopt;
  }
  bool skip(uint64_t count) {
    if (count > end - position)
      return false;
    position += count;
    return true;
  }

  std::string_view bytes;
  uint64_t position, end;
};
} // namespace

std::optional<std::vector<std::optional<uint64_t>>> findRawDataOffsets(std::string_view file) {
  std::vector<std::optional<uint64_t>> offsets;
  Reader model(file, 0, file.size());
  while (!model.atEnd()) {
    std::optional<Field> field = model.next();
    if (!field)
      return std::nullopt;
    if (!field->delimited || field->number != modelGraph)
      continue;
    Reader graph(file, field->begin, field->end);
    while (!graph.atEnd()) {
      std::optional<Field> member = graph.next();
      if (!member)
        return std::nullopt;
      if (!member->delimited || member->number != graphInitializer)
        continue;
      std::optional<uint64_t> offset;
      Reader tensor(file, member->begin, member->end);
      while (!tensor.atEnd()) {
        std::optional<Field> part = tensor.next();
        if (!part)
          return std::nullopt;
        // A repeated scalar field counts once, the last time.
        if (part->delimited && part->number == tensorRawData)
          offset = part->begin;
      }
      offsets.push_back(offset);
    }
  }
  return offsets;
}

} // namespace mlir::moec::onnx_import
