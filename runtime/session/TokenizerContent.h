// What a Tokenizer holds. Private to the files that make and use one.
#ifndef MOERT_SESSION_TOKENIZERCONTENT_H
#define MOERT_SESSION_TOKENIZERCONTENT_H

#include "runtime/session/BytePairs.h"
#include "runtime/session/TextSteps.h"
#include "runtime/session/Tokenizer.h"

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

namespace moert {

// A token that is cut out of the text before anything else.
struct AddedToken {
  std::string text;
  std::int32_t id;
  bool isWholeWord = false; // only where no letter touches it
  bool takesSpaceBefore = false, takesSpaceAfter = false;
};

// Finds added tokens in a text: the leftmost, of several there the longest.
class AddedTokens {
public:
  void add(AddedToken token) { tokens.push_back(std::move(token)); }
  Status finish(); // after the last one
  bool isEmpty() const { return tokens.empty(); }
  std::int32_t find(std::string_view text) const; // -1: none

  // What an added token has taken of a text, or -1 and a part without one.
  struct Part {
    std::string_view text;
    std::int32_t id;
  };
  Result<std::vector<Part>> cut(std::string_view text) const;

private:
  const AddedToken *at(std::string_view text) const;
  Result<bool> endsInLetter(std::string_view text) const;
  Result<bool> beginsWithLetter(std::string_view text) const;

  std::vector<AddedToken> tokens;
  // Of the tokens that begin with a byte: how long they are, the longest first. A hostile file may
  // have a million tokens, but has few lengths.
  std::array<std::vector<std::size_t>, 256> lengths;
  std::unordered_map<std::string_view, std::size_t> byText; // index of the first one with this text
  std::optional<Splitter> letter;                          // a character of a word
};

struct Tokenizer::Content {
  struct Token {
    std::string bytes; // what decoding gives
    bool special = false;
  };
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  std::vector<Token> tokens; // by id
  // The vocabulary: by the bytes that a token stands for if it is byte-level, else by its text.
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> ids;
  BytePairs pairs;
  bool isByteLevel = false;
  bool ignoreMerges = false;
  std::array<std::int32_t, 256> byteTokens; // -1: none
  // Of a vocabulary of text: what a character outside of it becomes.
  bool hasByteFallback = false; // its bytes, as tokens "<0x41>"
  std::int32_t unknown = -1;    // this token; -1: an error
  bool fusesUnknown = false;    // neighbours become one

  AddedTokens addedToText, addedToNormalized;
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> preTokenizers;
  std::size_t strippedSpaces = 0; // how many leading spaces decoding removes

  // Appends the tokens of a text without added tokens.
  Status encodePlain(std::string_view text, bool isFirst, std::vector<std::int32_t> &result) const;
  Status encodePiece(std::string_view piece, std::vector<std::int32_t> &result) const;
  // The tokens that merging begins with.
  Status bytesOf(std::string_view piece, std::vector<std::int32_t> &result) const;
  Status charactersOf(std::string_view piece, std::vector<std::int32_t> &result) const;

  Content() { byteTokens.fill(-1); }
};

} // namespace moert

#endif
