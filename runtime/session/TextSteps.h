// What happens to text before byte-pair encoding: normalizers change it, pre-tokenizers cut it.
#ifndef MOERT_SESSION_TEXTSTEPS_H
#define MOERT_SESSION_TEXTSTEPS_H

#include "runtime/session/Splitter.h"

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moert {

struct Normalizer {
  enum Kind { Nfc, Nfd, Nfkc, Nfkd, Lowercase, Prepend, Replace, StripLeft, StripRight };
  Kind kind;
  std::string text;                // what Prepend and Replace insert
  std::optional<Splitter> pattern; // what Replace replaces

  Status apply(std::string &content) const; // valid UTF-8, and so is the result
};

// A part of the text.
struct TextPiece {
  std::string_view text;
  bool isFirst; // whether it begins where the whole text begins
};

struct PreTokenizer {
  enum Kind { Split, PrefixSpace, Metaspace };
  enum Scheme { Always, First, Never }; // which pieces get Metaspace's mark in front

  Kind kind;
  std::optional<Splitter> splitter; // of Split, and of Metaspace if it splits at its mark
  std::string mark;                 // what Metaspace writes for a space
  Scheme scheme = Always;

  // Replaces `pieces` by finer ones. Text that is changed on the way is kept in `storage`.
  Status apply(std::vector<TextPiece> &pieces, std::deque<std::string> &storage) const;
};

} // namespace moert

#endif
