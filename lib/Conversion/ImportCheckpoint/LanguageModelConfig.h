//===- LanguageModelConfig.h - what every language model's folder says about itself
//------------===//

#ifndef MOEC_CONVERSION_IMPORTCHECKPOINT_LANGUAGEMODELCONFIG_H
#define MOEC_CONVERSION_IMPORTCHECKPOINT_LANGUAGEMODELCONFIG_H

#include "Checkpoint.h"

namespace mlir::moec {

struct LanguageModelConfig {
  int64_t vocabulary = 1;
  int64_t maximumTokens = 0; // longest context; 0: the config names none
  int64_t bosToken = -1;     // -1: none
  std::vector<int64_t> eosTokens;
  bool addBos = false;   // whether a prompt starts with bosToken
  std::string tokenizer; // file name; empty: none
};

/// From config.json, generation_config.json and tokenizer_config.json; the last two may be missing.
LanguageModelConfig readLanguageModelConfig(Checkpoint &checkpoint);

} // namespace mlir::moec

#endif // MOEC_CONVERSION_IMPORTCHECKPOINT_LANGUAGEMODELCONFIG_H
