//===- ModelFile.h - an .onnx file, read and checked
//--------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTONNX_MODELFILE_H
#define MOEC_CONVERSION_IMPORTONNX_MODELFILE_H

#include "runtime/base/File.h"
#include "runtime/base/Status.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onnx {
class ModelProto;
}

namespace mlir::moec::onnx_import {

/// The parsed file, and what is needed to refer to the bytes in it and beside it.
struct ModelFile {
  std::string path;
  std::string folderPath;
  std::string fileName; // inside folderPath
  moert::Folder folder; // external data is opened below it only
  uint64_t size = 0;
  std::unique_ptr<onnx::ModelProto> model;
  std::vector<std::optional<uint64_t>> rawDataOffsets; // of the graph's initialisers

  ModelFile(ModelFile &&) noexcept;
  ~ModelFile();
  static moert::Result<ModelFile> open(const std::string &path);
  /// The content of the file at `path`, already read.
  static moert::Result<ModelFile> fromBytes(std::string_view bytes, const std::string &path);

private:
  explicit ModelFile(moert::Folder folder);
};

/// Parses bytes as a model, with everything bounded by their number; `location` is for messages.
moert::Result<std::unique_ptr<onnx::ModelProto>> parseModel(std::string_view bytes,
                                                            const std::string &location);

} // namespace mlir::moec::onnx_import

#endif
