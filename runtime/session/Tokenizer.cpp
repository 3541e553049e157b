#include "runtime/session/Tokenizer.h"

#include "runtime/session/TokenizerContent.h"
#include "runtime/session/Utf8.h"

#include <algorithm>

namespace moert {

Tokenizer::Tokenizer(std::unique_ptr<Content> content) : content(std::move(content)) {}
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;
Tokenizer &Tokenizer::operator=(Tokenizer &&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Status Tokenizer::Content::bytesOf(std::string_view piece,
                                   std::vector<std::int32_t> &result) const {
  for (char c : piece) {
    std::int32_t id = byteTokens[static_cast<unsigned char>(c)];
    if (id < 0)
      return {ErrorCode::Unsupported,
              "the vocabulary has no token for a byte of " + inQuotes(piece)};
    result.push_back(id);
  }
  return {};
}

Status Tokenizer::Content::charactersOf(std::string_view piece,
                                        std::vector<std::int32_t> &result) const {
  bool wasUnknown = false; // the character before
  for (std::string_view rest = piece; !rest.empty();) {
    std::string_view character = rest.substr(0, nextUtf8(rest).bytes);
    rest.remove_prefix(character.size());
    if (auto found = ids.find(character); found != ids.end()) {
      result.push_back(found->second);
      wasUnknown = false;
      continue;
    }
    bool hasBytes = hasByteFallback && std::all_of(character.begin(), character.end(), [&](char c) {
                      return byteTokens[static_cast<unsigned char>(c)] >= 0;
                    });
    if (hasBytes) {
      for (char c : character)
        result.push_back(byteTokens[static_cast<unsigned char>(c)]);
      wasUnknown = false;
      continue;
    }
    if (unknown < 0)
      return {ErrorCode::Unsupported, "the vocabulary has no token for the character " +
                                          inQuotes(character) + " of " + inQuotes(piece)};
    if (!wasUnknown || !fusesUnknown)
      result.push_back(unknown);
    wasUnknown = true;
  }
  return {};
}

Status Tokenizer::Content::encodePiece(std::string_view piece,
                                       std::vector<std::int32_t> &result) const {
  if (ignoreMerges) {
    if (auto whole = ids.find(piece); whole != ids.end()) {
      result.push_back(whole->second);
      return {};
    }
  }
  std::size_t begin = result.size();
  MOERT_RETURN_IF_ERROR(isByteLevel ? bytesOf(piece, result) : charactersOf(piece, result));
  pairs.merge(result, begin);
  return {};
}

Status Tokenizer::Content::encodePlain(std::string_view text, bool isFirst,
                                       std::vector<std::int32_t> &result) const {
  std::string normal(text);
  for (const Normalizer &normalizer : normalizers)
    MOERT_RETURN_IF_ERROR(normalizer.apply(normal));
  MOERT_ASSIGN_OR_RETURN(auto parts, addedToNormalized.cut(normal));
  for (const AddedTokens::Part &part : parts) {
    if (part.id >= 0) {
      result.push_back(part.id);
      continue;
    }
    std::deque<std::string> storage;
    std::vector<TextPiece> pieces = {{part.text, isFirst && part.text.data() == normal.data()}};
    for (const PreTokenizer &step : preTokenizers)
      MOERT_RETURN_IF_ERROR(step.apply(pieces, storage));
    for (const TextPiece &piece : pieces)
      MOERT_RETURN_IF_ERROR(encodePiece(piece.text, result));
  }
  return {};
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text) const {
  // Ids and positions inside a piece are 32-bit.
  if (text.size() > (std::size_t(1) << 28))
    return Status(ErrorCode::InvalidArgument,
                  "a text of " + std::to_string(text.size()) + " bytes is too long to encode");
  std::string clean;
  appendUtf8(clean, text, true);
  std::vector<std::int32_t> ids;
  MOERT_ASSIGN_OR_RETURN(auto parts, content->addedToText.cut(clean));
  for (const AddedTokens::Part &part : parts) {
    if (part.id >= 0)
      ids.push_back(part.id);
    else
      MOERT_RETURN_IF_ERROR(content->encodePlain(part.text, part.text.data() == clean.data(), ids));
  }
  return ids;
}

std::string_view Tokenizer::bytes(std::int32_t id, bool special) const {
  if (id < 0 || static_cast<std::size_t>(id) >= content->tokens.size())
    return {};
  const Content::Token &token = content->tokens[static_cast<std::size_t>(id)];
  return token.special && !special ? std::string_view() : std::string_view(token.bytes);
}

std::size_t Tokenizer::strippedSpaces() const { return content->strippedSpaces; }

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool special) const {
  StreamDecoder decoder(*this, special);
  std::string text;
  for (std::int32_t id : ids)
    text += decoder.add(id);
  return text + decoder.finish();
}

std::size_t Tokenizer::size() const { return content->tokens.size(); }

std::int32_t Tokenizer::find(std::string_view token) const {
  for (const AddedTokens *added : {&content->addedToText, &content->addedToNormalized})
    if (std::int32_t id = added->find(token); id >= 0)
      return id;
  auto found = content->ids.find(token);
  return found == content->ids.end() ? -1 : found->second;
}

StreamDecoder::StreamDecoder(const Tokenizer &tokenizer, bool special)
    : tokenizer(&tokenizer), special(special), spaces(tokenizer.strippedSpaces()) {}

std::string StreamDecoder::add(std::int32_t id) {
  std::string_view bytes = tokenizer->bytes(id, special);
  for (; spaces > 0 && bytes.starts_with(' '); --spaces)
    bytes.remove_prefix(1);
  if (!bytes.empty())
    spaces = 0;
  pending += bytes;
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
