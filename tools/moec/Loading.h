// Bundles, models and token ids, as several commands need them.
#ifndef MOEC_TOOLS_MOEC_LOADING_H
#define MOEC_TOOLS_MOEC_LOADING_H

#include "runtime/session/Model.h"
#include "runtime/session/Tokenizer.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace moec {

moert::Result<std::shared_ptr<const moert::Bundle>> openBundle(const std::string &path,
                                                               const std::string &weights);

// Makes the bundle ready to run, with a progress bar.
moert::Result<std::shared_ptr<const moert::Model>>
loadModel(std::shared_ptr<const moert::Bundle> bundle, unsigned threads, const std::string &variant,
          const std::string &device);

// An error when the bundle holds no language model.
moert::Status requireLanguageModel(const moert::Bundle &bundle);

// None when the bundle has no tokenizer.
moert::Result<std::optional<moert::Tokenizer>> loadTokenizer(const moert::Bundle &bundle);

// "5,6,7" or "@file.npy"; every id below `vocabulary`.
moert::Result<std::vector<std::int32_t>> readIds(const std::string &text, std::uint64_t vocabulary);

} // namespace moec

#endif
