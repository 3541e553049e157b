// What stands behind the C interface's opaque types, and how results cross it.
#ifndef MOERT_API_HANDLES_H
#define MOERT_API_HANDLES_H

#include "moert/moert.h"
#include "runtime/session/Session.h"
#include "runtime/session/Tokenizer.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

struct moert_error {
  moert::Error content;
};
struct moert_bundle {
  std::shared_ptr<const moert::Bundle> content;
};
struct moert_model {
  std::shared_ptr<const moert::Model> content;
};
struct moert_tokenizer {
  moert::Tokenizer content;
};
struct moert_image {
  moert::SharedImage content;
};
struct moert_session {
  moert::Session content;
};
struct moert_snapshot {
  moert::Snapshot content;
};

namespace moert::api {

// Null for success.
inline moert_error *toError(const Status &status) {
  if (status.isOk())
    return nullptr;
  return new moert_error{{status.code(), status.message(), status.location(), status.hint()}};
}

inline moert_error *badArgument(const char *message) {
  return toError(Status(ErrorCode::InvalidArgument, message));
}

// The caller's options, which may come from an older header: what it does not have is zero.
template <typename Options>
Options readOptions(const Options *options) {
  Options result;
  std::memset(&result, 0, sizeof result);
  if (options)
    std::memcpy(&result, options, std::min(options->size, sizeof result));
  return result;
}

inline ByteProgress toProgress(moert_progress progress, void *context) {
  if (!progress)
    return {};
  return [=](std::uint64_t done, std::uint64_t total) { progress(context, done, total); };
}

// A copy that moert_free frees.
template <typename T>
moert_error *copyOut(const T *values, std::size_t count, std::size_t extra, T **result) {
  auto *copy = static_cast<T *>(std::malloc(std::max<std::size_t>((count + extra) * sizeof(T), 1)));
  if (!copy)
    return toError(Status(ErrorCode::OutOfMemory, "no memory for a result"));
  std::copy(values, values + count, copy);
  std::fill(copy + count, copy + count + extra, T());
  *result = copy;
  return nullptr;
}

} // namespace moert::api

// Leaves a function of the C interface with the error, if there is one.
#define MOERT_API_RETURN_IF_ERROR(expression)                                                      \
  do {                                                                                             \
    if (moert_error *moertError = (expression))                                                    \
      return moertError;                                                                           \
  } while (false)

#endif
