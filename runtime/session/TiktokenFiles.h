// The tokenizer of a checkpoint folder as the text of one tokenizer.json, whatever files it is
// made of.
#ifndef MOERT_SESSION_TIKTOKENFILES_H
#define MOERT_SESSION_TIKTOKENFILES_H

#include "runtime/base/Json.h"

#include <string>
#include <string_view>

namespace moert {

// tokenizer.json as it is, or made from tiktoken.model, tokenizer_config.json and config.json.
Result<std::string> readTokenizerFiles(const std::string &folder);

// The files' contents; the last two may be null. The result's model has the type RankedBPE, a form
// of this project's own: tiktoken's ranks as vocabulary, without merges.
Result<std::string> tiktokenToJson(std::string_view ranks, const Json &config,
                                   const Json &tokenizerConfig);

} // namespace moert

#endif
