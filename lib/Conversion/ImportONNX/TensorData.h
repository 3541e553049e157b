//===- TensorData.h - the type, shape and bytes of an ONNX tensor
//------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTONNX_TENSORDATA_H
#define MOEC_CONVERSION_IMPORTONNX_TENSORDATA_H

#include "ModelFile.h"
#include "runtime/base/ElementType.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace onnx {
class TensorProto;
}

namespace mlir::moec::onnx_import {

/// The project's element type for a TensorProto.DataType number; none for strings, complex numbers
/// and unknown numbers.
std::optional<moert::ElementType> elementTypeFromONNX(int dataType);
/// "FLOAT", or the number when the schema does not know it.
std::string dataTypeName(int dataType);

/// Where the bytes of a tensor lie.
struct DataReference {
  std::string file; // below the model's folder
  uint64_t offset = 0;
};

struct TensorData {
  moert::ElementType type = moert::ElementType::Unspecified;
  std::vector<int64_t> shape;
  uint64_t byteCount = 0;
  /// Set when the bytes can be referred to instead of copied.
  std::optional<DataReference> reference;
  /// Little-endian elements as the project stores them. Not there when a reference says where to
  /// read them and they are many.
  std::vector<char> bytes;
};

/// Checks everything about a tensor: type, shape, amount of data, and for external data that the
/// file is there, lies below the model's folder and is long enough. `rawDataOffset` is where the
/// file holds raw_data, if known.
moert::Result<TensorData> readTensor(const onnx::TensorProto &tensor, const ModelFile &file,
                                     std::optional<uint64_t> rawDataOffset);

/// The bytes of a tensor, read from its file where they are not at hand.
moert::Result<std::vector<char>> readBytes(const TensorData &data, const ModelFile &file);

} // namespace mlir::moec::onnx_import

#endif
