#include "runtime/session/Tokenizer.h"

#include "runtime/session/TokenizerContent.h"
#include "runtime/session/Utf8.h"

#include <algorithm>

namespace moert {

Tokenizer::Tokenizer(std::unique_ptr<Content> content) : content(std::move(content)) {}
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;
Tokenizer &Tokenizer::operator=(Tokenizer &&) noexcept = default;
Tokenizer::~Tokenizer() = default;

const Tokenizer::Content::Added *Tokenizer::Content::addedAt(std::string_view text) const {
  for (std::uint32_t index : addedByFirstByte[static_cast<unsigned char>(text.front())])
    if (text.substr(0, added[index].text.size()) == added[index].text)
      return &added[index];
  return nullptr;
}

Status Tokenizer::Content::encodePlain(std::string_view text,
                                       std::vector<std::int32_t> &ids) const {
  std::vector<std::string_view> pieces, finer;
  if (!text.empty())
    pieces.push_back(text);
  for (const Splitter &splitter : splitters) {
    finer.clear();
    for (std::string_view piece : pieces)
      MOERT_RETURN_IF_ERROR(splitter.split(piece, finer));
    pieces.swap(finer);
  }
  std::string spaced;
  for (std::string_view piece : pieces) {
    if (prefixSpace && piece.front() != ' ') {
      spaced = " " + std::string(piece);
      piece = spaced;
    }
    if (ignoreMerges) {
      if (auto whole = idByBytes.find(std::string(piece)); whole != idByBytes.end()) {
        ids.push_back(whole->second);
        continue;
      }
    }
    if (!pairs.encode(piece, ids))
      return {ErrorCode::Unsupported,
              "the vocabulary has no token for a byte of " + inQuotes(piece)};
  }
  return {};
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text) const {
  // Ids and positions inside a piece are 32-bit.
  if (text.size() > (std::size_t(1) << 30))
    return Status(ErrorCode::InvalidArgument,
                  "a text of " + std::to_string(text.size()) + " bytes is too long to encode");
  std::string clean;
  appendUtf8(clean, text, true);
  std::vector<std::int32_t> ids;
  std::string_view rest = clean;
  std::size_t plain = 0; // bytes at the front of `rest` without an added token
  while (plain < rest.size()) {
    const Content::Added *token = content->addedAt(rest.substr(plain));
    if (!token) {
      ++plain;
      continue;
    }
    MOERT_RETURN_IF_ERROR(content->encodePlain(rest.substr(0, plain), ids));
    ids.push_back(token->id);
    rest.remove_prefix(plain + token->text.size());
    plain = 0;
  }
  MOERT_RETURN_IF_ERROR(content->encodePlain(rest, ids));
  return ids;
}

std::string_view Tokenizer::bytes(std::int32_t id, bool special) const {
  if (id < 0 || static_cast<std::size_t>(id) >= content->tokens.size())
    return {};
  const Content::Token &token = content->tokens[static_cast<std::size_t>(id)];
  return token.special && !special ? std::string_view() : std::string_view(token.bytes);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool special) const {
  std::string raw, text;
  for (std::int32_t id : ids)
    raw += bytes(id, special);
  appendUtf8(text, raw, true);
  return text;
}

std::size_t Tokenizer::size() const { return content->tokens.size(); }

std::int32_t Tokenizer::find(std::string_view token) const {
  for (const Content::Added &added : content->added)
    if (added.text == token)
      return added.id;
  auto found = content->idByBytes.find(std::string(token));
  return found == content->idByBytes.end() ? -1 : found->second;
}

std::string StreamDecoder::add(std::int32_t id) {
  pending += tokenizer->bytes(id, special);
  std::string text;
  pending.erase(0, appendUtf8(text, pending, false));
  return text;
}

std::string StreamDecoder::finish() {
  std::string text;
  appendUtf8(text, pending, true);
  pending.clear();
  return text;
}

} // namespace moert
