#include "runtime/session/TokenizerContent.h"
#include "runtime/session/Utf8.h"

#include <algorithm>
#include <functional>

namespace moert {

Status AddedTokens::finish() {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    lengths[static_cast<unsigned char>(tokens[i].text[0])].push_back(tokens[i].text.size());
    byText.emplace(tokens[i].text, i);
  }
  for (std::vector<std::size_t> &each : lengths) {
    std::sort(each.begin(), each.end(), std::greater<>());
    each.erase(std::unique(each.begin(), each.end()), each.end());
  }
  if (std::any_of(tokens.begin(), tokens.end(),
                  [](const AddedToken &t) { return t.isWholeWord; })) {
    MOERT_ASSIGN_OR_RETURN(letter,
                           Splitter::create("\\w", PatternSyntax::Rust, SplitBehavior::Removed));
  }
  return {};
}

std::int32_t AddedTokens::find(std::string_view text) const {
  auto found = byText.find(text);
  return found == byText.end() ? -1 : tokens[found->second].id;
}

const AddedToken *AddedTokens::at(std::string_view text) const {
  for (std::size_t length : lengths[static_cast<unsigned char>(text.front())]) {
    if (length > text.size())
      continue;
    if (auto found = byText.find(text.substr(0, length)); found != byText.end())
      return &tokens[found->second];
  }
  return nullptr;
}

// A character of a word is removed, so nothing is left of it.
Result<bool> AddedTokens::endsInLetter(std::string_view text) const {
  std::vector<std::string_view> left;
  MOERT_RETURN_IF_ERROR(letter->split(lastCharacter(text), left));
  return !text.empty() && left.empty();
}

Result<bool> AddedTokens::beginsWithLetter(std::string_view text) const {
  std::vector<std::string_view> left;
  MOERT_RETURN_IF_ERROR(
      letter->split(text.substr(0, text.empty() ? 0 : nextUtf8(text).bytes), left));
  return !text.empty() && left.empty();
}

Result<std::vector<AddedTokens::Part>> AddedTokens::cut(std::string_view text) const {
  std::vector<Part> parts;
  std::size_t done = 0; // where the text that is in no part yet begins
  for (std::size_t i = tokens.empty() ? text.size() : 0; i < text.size();) {
    const AddedToken *token = at(text.substr(i));
    if (!token) {
      ++i;
      continue;
    }
    std::size_t begin = i, end = i + token->text.size();
    i = end;
    if (token->isWholeWord) {
      MOERT_ASSIGN_OR_RETURN(bool touchesLeft, endsInLetter(text.substr(0, begin)));
      MOERT_ASSIGN_OR_RETURN(bool touchesRight, beginsWithLetter(text.substr(end)));
      if (touchesLeft || touchesRight)
        continue;
    }
    // What a token before has taken of the space is gone.
    if (begin < done)
      continue;
    if (token->takesSpaceBefore)
      begin -= trailingSpace(text.substr(done, begin - done));
    if (token->takesSpaceAfter)
      end += leadingSpace(text.substr(end));
    if (begin > done)
      parts.push_back({text.substr(done, begin - done), -1});
    parts.push_back({text.substr(begin, end - begin), token->id});
    done = end;
  }
  if (done < text.size())
    parts.push_back({text.substr(done), -1});
  return parts;
}

} // namespace moert
