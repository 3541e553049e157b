// Cuts text into the pieces that byte-pair encoding works on, with the regular expressions of a
// tokenizer.json.
#ifndef MOERT_SESSION_SPLITTER_H
#define MOERT_SESSION_SPLITTER_H

#include "runtime/base/Status.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace moert {

// One regular expression; immutable and safe to share between threads.
class Splitter {
public:
  // The pattern in PCRE2's syntax with Unicode classes, or a literal text.
  static Result<Splitter> create(const std::string &pattern, bool literal);
  Splitter(Splitter &&) noexcept;
  Splitter &operator=(Splitter &&) noexcept;
  ~Splitter();

  // Appends to `pieces` the matches in `text` (valid UTF-8) and what lies between them, in order. A
  // pattern that would take forever on this text gives an error.
  Status split(std::string_view text, std::vector<std::string_view> &pieces) const;

private:
  struct Code;
  explicit Splitter(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code;
};

} // namespace moert

#endif
