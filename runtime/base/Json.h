// JSON from files that may be hostile: bounded size and depth, duplicate keys refused, and typed
// access that reports instead of aborting. (nlohmann's own accessors abort on a wrong type when
// exceptions are off: use JsonView on foreign data.)
#ifndef MOERT_BASE_JSON_H
#define MOERT_BASE_JSON_H

#include "runtime/base/File.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace moert {

using Json = nlohmann::json;

struct JsonLimits {
  std::uint64_t bytes = std::uint64_t(256) << 20;
  unsigned depth = 64;
  bool allowDuplicateKeys = false; // when allowed, the last one counts
};

// `location` names the text in messages.
Result<Json> parseJson(std::string_view text, std::string_view location,
                       const JsonLimits &limits = {});
Result<Json> readJson(const File &file, const JsonLimits &limits = {});

// A value somewhere in a document, with the path that leads to it, for reading with complaints. A
// missing key is a null view unless it was required; every problem lands in `problems`, which
// outlives the view.
//
//   Problems problems("config.json");
//   JsonView config(document, problems);
//   int64_t hidden = config["hidden_size"].integer(1, 1 << 20).value_or(0);
//   bool bias = config.optional("attention_bias").boolean().value_or(false);
//   MOERT_RETURN_IF_ERROR(problems.toStatus(ErrorCode::InvalidData));
class JsonView {
public:
  JsonView(const Json &value, Problems &problems) : value(&value), problems(&problems) {}

  // False for a missing value and for null.
  explicit operator bool() const { return value && !value->is_null(); }
  const Json *raw() const { return value; }
  const std::string &path() const { return where; } // "rope_scaling.factor"

  // The member `key` of an object: reported when it is missing (or when this is no object).
  JsonView operator[](std::string_view key) const;
  // The same, but a missing or null member is a null view without a report.
  JsonView optional(std::string_view key) const;

  // Each reports a wrong type or range and then gives none; on a null view it gives none silently.
  std::optional<std::int64_t> integer(std::int64_t least = INT64_MIN,
                                      std::int64_t most = INT64_MAX) const;
  std::optional<double> number() const; // finite
  std::optional<bool> boolean() const;
  std::optional<std::string> string() const;
  std::vector<JsonView> elements() const;                        // of an array
  std::vector<std::pair<std::string, JsonView>> members() const; // of an object, sorted
  // Reports "PATH: MESSAGE".
  void complain(const std::string &message) const;

private:
  JsonView(const Json *value, Problems *problems, std::string where)
      : value(value), problems(problems), where(std::move(where)) {}
  JsonView member(std::string_view key, bool required) const;
  std::nullopt_t expected(std::string_view what) const;

  const Json *value;
  Problems *problems;
  std::string where;
};

} // namespace moert

#endif
