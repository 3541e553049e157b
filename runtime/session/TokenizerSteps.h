// The fields of a tokenizer.json that say what happens before and after byte-pair encoding. Each
// function complains about what it does not support.
#ifndef MOERT_SESSION_TOKENIZERSTEPS_H
#define MOERT_SESSION_TOKENIZERSTEPS_H

#include "runtime/base/Json.h"
#include "runtime/session/TextSteps.h"

#include <utility>

namespace moert {

std::vector<Normalizer> readNormalizers(const JsonView &normalizer);

struct PreTokenizers {
  std::vector<PreTokenizer> steps;
  bool isByteLevel = false; // the last step writes the pieces in the byte alphabet
};
PreTokenizers readPreTokenizers(const JsonView &preTokenizer);

struct Decoding {
  bool isByteLevel = false;
  // Of a vocabulary of text.
  std::vector<std::pair<std::string, std::string>> replacements;
  bool hasByteFallback = false; // "<0x41>" is a byte
  std::size_t strippedSpaces = 0;

  std::string bytes(std::string_view token) const; // what a token of text stands for
};
Decoding readDecoder(const JsonView &decoder);

// The tokens that a template puts in front of a text; those behind it would end a prompt and are
// left out.
std::vector<std::int64_t> readTemplateBeginning(const JsonView &postProcessor);

} // namespace moert

#endif
