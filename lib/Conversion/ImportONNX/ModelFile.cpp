//===- ModelFile.cpp - an .onnx file, read and checked
//------------------------------------------===//

#include "ModelFile.h"

#include "WireOffsets.h"

#include "onnx-ml.pb.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

namespace mlir::moec::onnx_import {

using moert::ErrorCode;
using moert::Result;
using moert::Status;

/// Protobuf cannot hold more; larger models keep their weights in external files.
static constexpr uint64_t maximumFileBytes = (uint64_t(1) << 31) - 1;
/// Nested graphs and types; exporters stay below ten.
static constexpr int maximumNesting = 64;

ModelFile::ModelFile(moert::Folder folder) : folder(std::move(folder)) {}
ModelFile::ModelFile(ModelFile &&) noexcept = default;
ModelFile::~ModelFile() = default;

Result<std::unique_ptr<onnx::ModelProto>> parseModel(std::string_view bytes,
                                                     const std::string &location) {
  auto model = std::make_unique<onnx::ModelProto>();
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetRecursionLimit(maximumNesting);
  if (!model->ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    return Status(ErrorCode::InvalidData, "not a well-formed ONNX model", location,
                  "the file is damaged or truncated, or is no ONNX file; export it again");
  if (!model->has_graph())
    return Status(ErrorCode::InvalidData, "the model has no graph", location);
  if (model->ir_version() < 3)
    return Status(ErrorCode::Unsupported,
                  "ir_version is " + std::to_string(model->ir_version()) + ", expected 3 or later",
                  location, "convert the model with onnx.version_converter");
  return model;
}

Result<ModelFile> ModelFile::open(const std::string &path) {
  MOERT_ASSIGN_OR_RETURN(moert::File file, moert::File::open(path));
  MOERT_ASSIGN_OR_RETURN(std::string bytes, file.readAll(maximumFileBytes));
  return fromBytes(bytes, path);
}

Result<ModelFile> ModelFile::fromBytes(std::string_view bytes, const std::string &path) {
  std::string folderPath(moert::parentPath(path));
  MOERT_ASSIGN_OR_RETURN(moert::Folder folder, moert::Folder::open(folderPath));
  ModelFile result(std::move(folder));
  result.path = path;
  result.folderPath = folderPath;
  result.fileName = std::string(moert::baseName(path));
  result.size = bytes.size();
  MOERT_ASSIGN_OR_RETURN(result.model, parseModel(bytes, path));
  std::optional<std::vector<std::optional<uint64_t>>> offsets = findRawDataOffsets(bytes);
  if (!offsets || offsets->size() != static_cast<size_t>(result.model->graph().initializer_size()))
    return Status(ErrorCode::InvalidData, "the file's fields cannot be located", path,
                  "export the model again");
  result.rawDataOffsets = std::move(*offsets);
  return result;
}

} // namespace mlir::moec::onnx_import
