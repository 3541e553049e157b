// Text to tokens and back, from a Hugging Face tokenizer.json with byte-pair encoding.
#ifndef MOERT_SESSION_TOKENIZER_H
#define MOERT_SESSION_TOKENIZER_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moert {

// Immutable and safe to share between threads.
class Tokenizer {
public:
  // `text` is the content of tokenizer.json, `place` its name for messages. Whatever in it is not
  // supported is one error that lists every such field.
  static Result<Tokenizer> parse(std::string_view text, std::string_view place);
  Tokenizer(Tokenizer &&) noexcept;
  Tokenizer &operator=(Tokenizer &&) noexcept;
  ~Tokenizer();

  // Any bytes are accepted; those that are no UTF-8 are encoded as the bytes of U+FFFD. Adds no
  // begin-of-text by itself. Texts of special tokens ("<|eos|>") become those tokens.
  Result<std::vector<std::int32_t>> encode(std::string_view text) const;

  // The text of tokens; special ones are left out unless asked for. Unknown ids give nothing. Bytes
  // that form no UTF-8 become U+FFFD.
  std::string decode(std::span<const std::int32_t> ids, bool special = false) const;

  // One past the highest id.
  std::size_t size() const;
  // The raw bytes of one token; empty for unknown ids and, unless asked for, special tokens.
  std::string_view bytes(std::int32_t id, bool special = false) const;
  // -1: no such token.
  std::int32_t find(std::string_view token) const;

  // How many leading spaces a decoded text loses: those that encoding puts in front.
  std::size_t strippedSpaces() const;

  struct Content; // TokenizerContent.h

private:
  explicit Tokenizer(std::unique_ptr<Content> content);
  std::unique_ptr<Content> content;
};

// Decodes token by token and holds back bytes until they form whole UTF-8 characters.
class StreamDecoder {
public:
  explicit StreamDecoder(const Tokenizer &tokenizer, bool special = false);
  // The text that became complete with this token.
  std::string add(std::int32_t id);
  // What is left, as U+FFFD.
  std::string finish();

private:
  const Tokenizer *tokenizer;
  bool special;
  std::size_t spaces; // leading ones that are still to be dropped
  std::string pending;
};

} // namespace moert

#endif
