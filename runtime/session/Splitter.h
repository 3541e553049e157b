// Cuts text into pieces at the matches of a regular expression.
#ifndef MOERT_SESSION_SPLITTER_H
#define MOERT_SESSION_SPLITTER_H

#include "runtime/base/Status.h"
#include "runtime/session/PatternSyntax.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moert {

// What becomes of the matches.
enum class SplitBehavior { Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous };

// One regular expression; immutable and safe to share between threads.
class Splitter {
public:
  // A regular expression with Unicode classes; without `syntax` the pattern is a literal text.
  static Result<Splitter> create(std::string_view pattern, std::optional<PatternSyntax> syntax,
                                 SplitBehavior behavior = SplitBehavior::Isolated,
                                 bool invert = false);
  Splitter(Splitter &&) noexcept;
  Splitter &operator=(Splitter &&) noexcept;
  ~Splitter();

  // Appends to `pieces` the parts of `text` (valid UTF-8), in order, none of them empty. A pattern
  // that would take forever on this text gives an error. `invert` swaps matches with what lies
  // between them.
  Status split(std::string_view text, std::vector<std::string_view> &pieces) const;

  // Puts `replacement` in the place of every match, whatever the behavior.
  Result<std::string> replace(std::string_view text, std::string_view replacement) const;

private:
  struct Code;
  struct Part {
    std::size_t begin, end;
    bool isMatch;
  };
  explicit Splitter(std::unique_ptr<Code> code, SplitBehavior behavior, bool invert);
  // Every part of `text`: matches, also empty ones, and what lies between them.
  Status parts(std::string_view text, std::vector<Part> &found) const;

  std::unique_ptr<Code> code;
  SplitBehavior behavior;
  bool invert;
};

} // namespace moert

#endif
