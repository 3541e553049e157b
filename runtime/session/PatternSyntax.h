// Regular expressions of tokenizers in PCRE2's syntax.
#ifndef MOERT_SESSION_PATTERNSYNTAX_H
#define MOERT_SESSION_PATTERNSYNTAX_H

#include "runtime/base/Status.h"

#include <string>
#include <string_view>

namespace moert {

// Whose regular expressions: tokenizer.json means Oniguruma's with Ruby's syntax; tiktoken means
// those of Rust.
enum class PatternSyntax { Oniguruma, Rust };

// The same pattern for PCRE2 with Unicode on and newline = LF. What differs is written out:
// intersections of classes ([a-z&&[^x]]), scripts (PCRE2's \p{Han} takes script extensions, too),
// \s and \w, possessive intervals, lines. Constructs that no tokenizer needs are errors.
Result<std::string> toPcre2(std::string_view pattern, PatternSyntax syntax);

} // namespace moert

#endif
