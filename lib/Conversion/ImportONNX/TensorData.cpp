//===- TensorData.cpp - the type, shape and bytes of an ONNX tensor
//----------------------------===//

#include "TensorData.h"

#include "runtime/base/CheckedMath.h"

#include "onnx-ml.pb.h"

#include <charconv>
#include <cstring>
#include <span>

namespace mlir::moec::onnx_import {

using moert::ElementType;
using moert::ErrorCode;
using moert::Result;
using moert::Status;
using onnx::TensorProto;

/// Larger data in the file is referred to only.
static constexpr uint64_t copiedBytes = 4096;

std::optional<ElementType> elementTypeFromONNX(int dataType) {
  // Types newer than the schema at hand are given by number: FLOAT4E2M1 23, FLOAT8E8M0 24, UINT2
  // 25, INT2 26.
  switch (dataType) {
  case TensorProto::FLOAT:
    return ElementType::F32;
  case TensorProto::UINT8:
    return ElementType::U8;
  case TensorProto::INT8:
    return ElementType::I8;
  case TensorProto::UINT16:
    return ElementType::U16;
  case TensorProto::INT16:
    return ElementType::I16;
  case TensorProto::INT32:
    return ElementType::I32;
  case TensorProto::INT64:
    return ElementType::I64;
  case TensorProto::BOOL:
    return ElementType::I1;
  case TensorProto::FLOAT16:
    return ElementType::F16;
  case TensorProto::DOUBLE:
    return ElementType::F64;
  case TensorProto::UINT32:
    return ElementType::U32;
  case TensorProto::UINT64:
    return ElementType::U64;
  case TensorProto::BFLOAT16:
    return ElementType::BF16;
  case TensorProto::FLOAT8E4M3FN:
    return ElementType::F8E4M3;
  case TensorProto::FLOAT8E4M3FNUZ:
    return ElementType::F8E4M3FNUZ;
  case TensorProto::FLOAT8E5M2:
    return ElementType::F8E5M2;
  case TensorProto::FLOAT8E5M2FNUZ:
    return ElementType::F8E5M2FNUZ;
  case 21:
    return ElementType::U4;
  case 22:
    return ElementType::I4;
  case 23:
    return ElementType::F4E2M1;
  case 24:
    return ElementType::E8M0;
  case 25:
    return ElementType::U2;
  case 26:
    return ElementType::I2;
  default:
    return std::nullopt;
  }
}

std::string dataTypeName(int dataType) {
  if (TensorProto::DataType_IsValid(dataType))
    return TensorProto::DataType_Name(static_cast<TensorProto::DataType>(dataType));
  return "type " + std::to_string(dataType);
}

namespace {

Status invalid(std::string message) { return Status(ErrorCode::InvalidData, std::move(message)); }

std::optional<uint64_t> parseNumber(const std::string &text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// Elements of a typed field (float_data and the like), each stored as `Stored`.
template <typename Stored, typename Field>
Status copyField(const Field &field, TensorData &data, int64_t elements, const char *name) {
  if (field.size() != elements)
    return invalid(std::string(name) + " holds " + std::to_string(field.size()) +
                   " elements, expected " + std::to_string(elements));
  data.bytes.resize(data.byteCount);
  for (int64_t i = 0; i < elements; ++i) {
    Stored value = static_cast<Stored>(field.Get(static_cast<int>(i)));
    std::memcpy(data.bytes.data() + i * sizeof(Stored), &value, sizeof(Stored));
  }
  return Status();
}

/// int32_data carries every type of at most 32 bits; what is narrower than a byte comes as packed
/// bytes.
Status copyInt32Data(const TensorProto &tensor, TensorData &data, int64_t elements) {
  const auto &field = tensor.int32_data();
  switch (moert::storageBits(data.type)) {
  case 32:
    return copyField<int32_t>(field, data, elements, "int32_data");
  case 16:
    return copyField<uint16_t>(field, data, elements, "int32_data");
  case 8:
    return copyField<uint8_t>(field, data, elements, "int32_data");
  default:
    return copyField<uint8_t>(field, data, static_cast<int64_t>(data.byteCount), "int32_data");
  }
}

Status readExternal(const TensorProto &tensor, const ModelFile &file, TensorData &data) {
  std::optional<std::string> location;
  uint64_t offset = 0, length = data.byteCount;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      std::optional<uint64_t> number = parseNumber(entry.value());
      if (!number)
        return invalid("external data: " + entry.key() + " is " + moert::inQuotes(entry.value()) +
                       ", expected a number of bytes");
      (entry.key() == "offset" ? offset : length) = *number;
    }
    // Other keys (checksum, and what exporters add) say nothing about where the bytes lie.
  }
  if (!location)
    return invalid("external data without a location");
  if (std::string problem = moert::relativePathProblem(*location); !problem.empty())
    return invalid("external data location " + moert::inQuotes(*location) + ": " + problem);
  if (length != data.byteCount)
    return invalid("external data: length is " + std::to_string(length) + " bytes, expected " +
                   std::to_string(data.byteCount) + " for its type and shape");
  MOERT_ASSIGN_OR_RETURN(moert::File external, file.folder.openFile(*location));
  if (!moert::rangeFits(offset, length, external.size()))
    return invalid("external data: bytes " + std::to_string(offset) + " to " +
                   std::to_string(offset + length) + " lie beyond the end of " +
                   moert::inQuotes(*location) + " (" + std::to_string(external.size()) + " bytes)");
  data.reference = DataReference{*location, offset};
  return Status();
}

} // namespace

Result<TensorData> readTensor(const TensorProto &tensor, const ModelFile &file,
                              std::optional<uint64_t> rawDataOffset) {
  TensorData data;
  std::optional<ElementType> type = elementTypeFromONNX(tensor.data_type());
  if (!type)
    return Status(ErrorCode::Unsupported,
                  "element type " + dataTypeName(tensor.data_type()) + " is not supported");
  data.type = *type;
  data.shape.assign(tensor.dims().begin(), tensor.dims().end());
  std::optional<int64_t> elements = moert::elementCount(data.shape);
  std::optional<uint64_t> bytes = moert::tensorBytes(data.type, data.shape);
  if (!elements || !bytes)
    return invalid("shape " + moert::shapeToString(data.shape) + " is negative or too large");
  data.byteCount = *bytes;
  if (tensor.has_segment())
    return Status(ErrorCode::Unsupported, "a tensor in segments is not supported");

  if (tensor.data_location() == TensorProto::EXTERNAL) {
    MOERT_RETURN_IF_ERROR(readExternal(tensor, file, data));
    return data;
  }
  if (tensor.has_raw_data()) {
    if (tensor.raw_data().size() != data.byteCount)
      return invalid("raw_data holds " + std::to_string(tensor.raw_data().size()) +
                     " bytes, expected " + std::to_string(data.byteCount) + " for " +
                     std::string(moert::elementTypeName(data.type)) + " " +
                     moert::shapeToString(data.shape));
    if (rawDataOffset)
      data.reference = DataReference{file.fileName, *rawDataOffset};
    if (!rawDataOffset || data.byteCount <= copiedBytes)
      data.bytes.assign(tensor.raw_data().begin(), tensor.raw_data().end());
    return data;
  }
  switch (tensor.data_type()) {
  case TensorProto::FLOAT:
    MOERT_RETURN_IF_ERROR(copyField<float>(tensor.float_data(), data, *elements, "float_data"));
    break;
  case TensorProto::DOUBLE:
    MOERT_RETURN_IF_ERROR(copyField<double>(tensor.double_data(), data, *elements, "double_data"));
    break;
  case TensorProto::INT64:
    MOERT_RETURN_IF_ERROR(copyField<int64_t>(tensor.int64_data(), data, *elements, "int64_data"));
    break;
  case TensorProto::UINT64:
    MOERT_RETURN_IF_ERROR(
        copyField<uint64_t>(tensor.uint64_data(), data, *elements, "uint64_data"));
    break;
  case TensorProto::UINT32:
    MOERT_RETURN_IF_ERROR(
        copyField<uint32_t>(tensor.uint64_data(), data, *elements, "uint64_data"));
    break;
  default:
    MOERT_RETURN_IF_ERROR(copyInt32Data(tensor, data, *elements));
  }
  return data;
}

Result<std::vector<char>> readBytes(const TensorData &data, const ModelFile &file) {
  if (!data.bytes.empty() || data.byteCount == 0)
    return data.bytes;
  MOERT_ASSIGN_OR_RETURN(moert::File external, file.folder.openFile(data.reference->file));
  std::vector<char> bytes(data.byteCount);
  MOERT_RETURN_IF_ERROR(
      external.readAt(std::as_writable_bytes(std::span(bytes)), data.reference->offset));
  return bytes;
}

} // namespace mlir::moec::onnx_import
