//===- WireOffsets.h - where the data of initialisers lies in an .onnx file
//--------------------===//
//
// A bundle refers to weights by file, offset and length. Protobuf's parser does not tell where a
// field lay, so the wire format is walked once more for the one path that matters: graph,
// initializer, raw_data.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_CONVERSION_IMPORTONNX_WIREOFFSETS_H
#define MOEC_CONVERSION_IMPORTONNX_WIREOFFSETS_H

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace mlir::moec::onnx_import {

/// For each initialiser of the main graph, in order: the offset of its raw_data, or none. Nothing
/// at all when the bytes are no well-formed model.
std::optional<std::vector<std::optional<uint64_t>>> findRawDataOffsets(std::string_view file);

} // namespace mlir::moec::onnx_import

#endif
