// What a Tokenizer holds. Private to Tokenizer.cpp and TokenizerReader.cpp.
#ifndef MOERT_SESSION_TOKENIZERCONTENT_H
#define MOERT_SESSION_TOKENIZERCONTENT_H

#include "runtime/session/BytePairs.h"
#include "runtime/session/Splitter.h"
#include "runtime/session/Tokenizer.h"

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

namespace moert {

struct Tokenizer::Content {
  struct Token {
    std::string bytes;
    bool special = false;
  };
  // A token that is cut out of the text before anything else.
  struct Added {
    std::string text;
    std::int32_t id;
  };

  std::vector<Token> tokens;                               // by id
  std::unordered_map<std::string, std::int32_t> idByBytes; // what byte-pair encoding can reach
  BytePairs pairs;
  bool ignoreMerges = false;
  bool prefixSpace = false;
  std::vector<Splitter> splitters; // one after the other
  std::vector<Added> added;
  // Indices into `added`, longest text first.
  std::array<std::vector<std::uint32_t>, 256> addedByFirstByte;

  // The added token that `text` (not empty) begins with, the longest one; null: none.
  const Added *addedAt(std::string_view text) const;
  // Appends the tokens of a text without added tokens.
  Status encodePlain(std::string_view text, std::vector<std::int32_t> &ids) const;
};

} // namespace moert

#endif
