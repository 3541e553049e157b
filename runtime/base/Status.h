// Errors as values. Nothing in the runtime throws; a function that can fail returns Status or
// Result<T>.
#ifndef MOERT_BASE_STATUS_H
#define MOERT_BASE_STATUS_H

#include <cassert>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace moert {

// Stable: the C interface and scripts rely on these numbers.
enum class ErrorCode : int {
  Ok = 0,
  InvalidArgument = 1, // the caller passed something out of range
  NotFound = 2,        // a file, tensor or entry does not exist
  InvalidData = 3,     // a file is damaged, truncated or contradicts itself
  Unsupported = 4,     // well-formed, but this version cannot do it
  InputOutput = 5,     // the operating system refused
  OutOfMemory = 6,
  WrongState = 7, // a valid call at the wrong time
  Internal = 8,   // a defect of this program
};

// "invalid data" and so on.
std::string_view errorCodeName(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::Internal;
  std::string message;  // what was expected and what was found
  std::string location; // the file, and the field, tensor or node in it
  std::string hint;     // what to do about it; may be empty
};

// Success, or one Error.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(ErrorCode code, std::string message, std::string location = {}, std::string hint = {})
      : error(std::make_unique<Error>(
            Error{code, std::move(message), std::move(location), std::move(hint)})) {
    assert(code != ErrorCode::Ok);
  }
  explicit Status(Error value) : error(std::make_unique<Error>(std::move(value))) {}
  Status(const Status &other)
      : error(other.error ? std::make_unique<Error>(*other.error) : nullptr) {}
  Status(Status &&) = default;
  Status &operator=(const Status &other) {
    error = other.error ? std::make_unique<Error>(*other.error) : nullptr;
    return *this;
  }
  Status &operator=(Status &&) = default;

  bool isOk() const { return !error; }
  ErrorCode code() const { return error ? error->code : ErrorCode::Ok; }
  const std::string &message() const { return get().message; }
  const std::string &location() const { return get().location; }
  const std::string &hint() const { return get().hint; }

  // "LOCATION: error: MESSAGE" and, on a line of its own, "hint: HINT".
  std::string toString() const;

  // The same error seen from further out: "PLACE: LOCATION".
  Status in(std::string_view place) &&;
  // The same error, its place told more exactly: "LOCATION: PART".
  Status at(std::string_view part) &&;

private:
  const Error &get() const;
  std::unique_ptr<Error> error;
};

// A value, or the Status that says why there is none.
template <typename T>
class [[nodiscard]] Result {
public:
  Result(T value) : content(std::move(value)) {}
  Result(Status status) : failure(std::move(status)) { assert(!failure.isOk()); }

  bool isOk() const { return content.has_value(); }
  const Status &status() const & { return failure; }
  Status status() && { return std::move(failure); }
  T &operator*() & { return *content; }
  const T &operator*() const & { return *content; }
  T &&operator*() && { return std::move(*content); }
  T *operator->() { return &*content; }
  const T *operator->() const { return &*content; }

private:
  std::optional<T> content;
  Status failure;
};

// Collects every problem of one input, so that a user repairs a file in one go.
class Problems {
public:
  explicit Problems(std::string location) : location(std::move(location)) {}

  void add(std::string message);
  bool empty() const { return count == 0; }
  std::size_t size() const { return count; }
  const std::string &place() const { return location; }
  // The first problems, as they were added.
  const std::vector<std::string> &listed() const { return messages; }
  // All problems as one error, one a line when there are several; success when there is none.
  Status toStatus(ErrorCode code, std::string hint = {}) const;

private:
  // A hostile file may hold millions of problems; the first ones are enough.
  static constexpr std::size_t shown = 50;
  std::string location;
  std::vector<std::string> messages;
  std::size_t count = 0;
};

// "'TEXT'", with control bytes and quotes escaped and long texts cut: names in files may be
// hostile.
std::string inQuotes(std::string_view text);

} // namespace moert

#define MOERT_CONCATENATE_INNER(a, b) a##b
#define MOERT_CONCATENATE(a, b) MOERT_CONCATENATE_INNER(a, b)

// Leaves the function with the error, if there is one.
#define MOERT_RETURN_IF_ERROR(expression)                                                          \
  do {                                                                                             \
    if (::moert::Status moertStatus = (expression); !moertStatus.isOk())                           \
      return moertStatus;                                                                          \
  } while (false)

// MOERT_ASSIGN_OR_RETURN(auto file, File::open(path)).
#define MOERT_ASSIGN_OR_RETURN(target, expression)                                                 \
  MOERT_ASSIGN_OR_RETURN_INNER(MOERT_CONCATENATE(moertResult, __LINE__), target, expression)
#define MOERT_ASSIGN_OR_RETURN_INNER(result, target, expression)                                   \
  auto result = (expression);                                                                      \
  if (!result.isOk())                                                                              \
    return std::move(result).status();                                                             \
  target = *std::move(result)

#endif
