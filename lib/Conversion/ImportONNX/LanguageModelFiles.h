//===- LanguageModelFiles.h - tokenizer and special tokens from files beside a graph
//-----------------===//

#ifndef MOEC_CONVERSION_IMPORTONNX_LANGUAGEMODELFILES_H
#define MOEC_CONVERSION_IMPORTONNX_LANGUAGEMODELFILES_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mlir::moec::onnx_import {

struct LanguageModelFiles {
  int64_t maximumTokens = 0; // longest context; 0: unknown
  int64_t bosToken = -1;     // -1: none
  std::vector<int64_t> eosTokens;
  bool addBos = false;
  bool hasTokenizer = false; // tokenizer.json
};

/// Reads config.json, generation_config.json and tokenizer_config.json of a folder, each of which
/// may be missing. Token ids are checked against the vocabulary.
moert::Result<LanguageModelFiles> readLanguageModelFiles(const std::string &folder,
                                                         int64_t vocabulary);

} // namespace mlir::moec::onnx_import

#endif
