//===- LanguageModelInterface.h - which inputs and outputs make a graph a language model
//---------===//

#ifndef MOEC_CONVERSION_IMPORTONNX_LANGUAGEMODELINTERFACE_H
#define MOEC_CONVERSION_IMPORTONNX_LANGUAGEMODELINTERFACE_H

#include "moec/Conversion/ImportONNX.h"

#include <optional>

namespace onnx {
class GraphProto;
}

namespace mlir::moec::onnx_import {

/// Positions among the graph's inputs (initialisers left out) and outputs.
struct LanguageModelInterface {
  unsigned tokens = 0, positions = 0, logits = 0;
  SmallVector<unsigned> past, present; // per layer, keys before values
  std::string batchName;               // of the batch dimension; empty when the file fixes it at 1
};

/// Recognises a language model by the names in `options`, by the usual names, or by structure: two
/// integer inputs [batch, tokens], of which one is looked up in a table, float inputs and outputs
/// of rank 4 that come in pairs, and one output of rank 3. Otherwise gives nothing, and `why` says
/// what is missing.
std::optional<LanguageModelInterface> recognizeLanguageModel(const onnx::GraphProto &graph,
                                                             const ImportONNXOptions &options,
                                                             std::string &why);

} // namespace mlir::moec::onnx_import

#endif
