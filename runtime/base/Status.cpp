#include "runtime/base/Status.h"

#include <cstdio>

namespace moert {

std::string_view errorCodeName(ErrorCode code) {
  switch (code) {
  case ErrorCode::Ok:
    return "ok";
  case ErrorCode::InvalidArgument:
    return "invalid argument";
  case ErrorCode::NotFound:
    return "not found";
  case ErrorCode::InvalidData:
    return "invalid data";
  case ErrorCode::Unsupported:
    return "unsupported";
  case ErrorCode::InputOutput:
    return "input/output error";
  case ErrorCode::OutOfMemory:
    return "out of memory";
  case ErrorCode::WrongState:
    return "wrong state";
  case ErrorCode::Internal:
    return "internal error";
  }
  return "unknown error";
}

const Error &Status::get() const {
  static const Error none{ErrorCode::Ok, {}, {}, {}};
  return error ? *error : none;
}

std::string Status::toString() const {
  if (!error)
    return "ok";
  std::string text;
  if (!error->location.empty())
    text += error->location + ": ";
  text += "error: " + error->message;
  if (!error->hint.empty())
    text += "\nhint: " + error->hint;
  return text;
}

Status Status::in(std::string_view place) && {
  if (error)
    error->location =
        error->location.empty() ? std::string(place) : std::string(place) + ": " + error->location;
  return std::move(*this);
}

Status Status::at(std::string_view part) && {
  if (error)
    error->location =
        error->location.empty() ? std::string(part) : error->location + ": " + std::string(part);
  return std::move(*this);
}

void Problems::add(std::string message) {
  if (count++ < shown)
    messages.push_back(std::move(message));
}

Status Problems::toStatus(ErrorCode code, std::string hint) const {
  if (count == 0)
    return {};
  if (count == 1)
    return {code, messages.front(), location, std::move(hint)};
  std::string text = std::to_string(count) + " problems:";
  for (const std::string &message : messages)
    text += "\n  " + message;
  if (count > messages.size())
    text += "\n  and " + std::to_string(count - messages.size()) + " more";
  return {code, std::move(text), location, std::move(hint)};
}

std::string inQuotes(std::string_view text) {
  constexpr std::size_t longest = 200;
  std::string result = "'";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == longest) {
      result += "...";
      break;
    }
    unsigned char byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      result += escape;
    } else {
      if (byte == '\'' || byte == '\\')
        result += '\\';
      result += text[i];
    }
  }
  return result + "'";
}

} // namespace moert
