#include "runtime/base/Json.h"

#include <cmath>

namespace moert {

namespace {

// Builds the document while bounding its depth and watching for duplicate keys.
class Builder final : public nlohmann::json_sax<Json> {
public:
  explicit Builder(const JsonLimits &limits) : limits(limits) {}

  Json document;
  std::string problem;

  bool null() override { return put(Json(nullptr)); }
  bool boolean(bool value) override { return put(Json(value)); }
  bool number_integer(number_integer_t value) override { return put(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return put(Json(value)); }
  bool number_float(number_float_t value, const string_t &) override { return put(Json(value)); }
  bool string(string_t &value) override { return put(Json(std::move(value))); }
  bool binary(binary_t &) override { return fail("binary values are no JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t &name) override {
    auto &object = open_.back()->get_ref<Json::object_t &>();
    auto [place, isNew] = object.try_emplace(std::move(name));
    if (!isNew && !limits.allowDuplicateKeys)
      return fail("the key " + inQuotes(place->first) + " occurs twice in one object");
    member = &place->second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &error) override {
    std::string text = error.what();
    // Drop nlohmann's "[json.exception.parse_error.101] ".
    if (std::size_t bracket = text.find("] "); bracket != std::string::npos)
      text = text.substr(bracket + 2);
    return fail("malformed JSON at byte " + std::to_string(position) + ": " + text);
  }

private:
  bool fail(std::string message) {
    problem = std::move(message);
    return false;
  }
  Json *place(Json &&value) {
    if (open_.empty()) {
      document = std::move(value);
      return &document;
    }
    Json &parent = *open_.back();
    if (parent.is_array()) {
      auto &array = parent.get_ref<Json::array_t &>();
      array.push_back(std::move(value));
      return &array.back();
    }
    *member = std::move(value);
    return member;
  }
  bool put(Json &&value) {
    place(std::move(value));
    return true;
  }
  bool open(Json &&value) {
    if (open_.size() == limits.depth)
      return fail("nested more than " + std::to_string(limits.depth) + " deep");
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits &limits;
  std::vector<Json *> open_;
  Json *member = nullptr;
};

} // namespace

Result<Json> parseJson(std::string_view text, std::string_view location, const JsonLimits &limits) {
  if (text.size() > limits.bytes)
    return Status(ErrorCode::InvalidData,
                  "the JSON text has " + std::to_string(text.size()) + " bytes; at most " +
                      std::to_string(limits.bytes) + " are accepted",
                  std::string(location));
  Builder builder(limits);
  if (!Json::sax_parse(text.begin(), text.end(), &builder))
    return Status(ErrorCode::InvalidData,
                  builder.problem.empty() ? "malformed JSON" : builder.problem,
                  std::string(location));
  return std::move(builder.document);
}

Result<Json> readJson(const File &file, const JsonLimits &limits) {
  MOERT_ASSIGN_OR_RETURN(std::string text, file.readAll(limits.bytes));
  return parseJson(text, file.name(), limits);
}

void JsonView::complain(const std::string &message) const {
  problems->add(where.empty() ? message : where + ": " + message);
}

std::nullopt_t JsonView::expected(std::string_view what) const {
  std::string found = value->is_structured()
                          ? value->type_name()
                          : value->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (found.size() > 100)
    found = found.substr(0, 100) + "...";
  complain("expected " + std::string(what) + ", found " + found);
  return std::nullopt;
}

JsonView JsonView::member(std::string_view key, bool required) const {
  std::string name = where.empty() ? std::string(key) : where + "." + std::string(key);
  if (!value)
    return {nullptr, problems, std::move(name)};
  if (!value->is_object()) {
    (void)expected("an object");
    return {nullptr, problems, std::move(name)};
  }
  auto found = value->find(std::string(key));
  if (found == value->end() || (found->is_null() && !required)) {
    JsonView missing(nullptr, problems, std::move(name));
    if (required)
      missing.complain("is missing");
    return missing;
  }
  return {&*found, problems, std::move(name)};
}

JsonView JsonView::operator[](std::string_view key) const { return member(key, true); }
JsonView JsonView::optional(std::string_view key) const { return member(key, false); }

std::optional<std::int64_t> JsonView::integer(std::int64_t least, std::int64_t most) const {
  if (!value)
    return std::nullopt;
  bool fits = value->is_number_integer();
  if (value->is_number_unsigned())
    fits = value->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX);
  if (fits) {
    auto number = value->get<std::int64_t>();
    if (number >= least && number <= most)
      return number;
  }
  if (least == INT64_MIN && most == INT64_MAX)
    return expected("an integer");
  return expected("an integer from " + std::to_string(least) + " to " + std::to_string(most));
}

std::optional<double> JsonView::number() const {
  if (!value)
    return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>()))
    return expected("a finite number");
  return value->get<double>();
}

std::optional<bool> JsonView::boolean() const {
  if (!value)
    return std::nullopt;
  if (!value->is_boolean())
    return expected("true or false");
  return value->get<bool>();
}

std::optional<std::string> JsonView::string() const {
  if (!value)
    return std::nullopt;
  if (!value->is_string())
    return expected("a string");
  return value->get<std::string>();
}

std::vector<JsonView> JsonView::elements() const {
  std::vector<JsonView> result;
  if (!value)
    return result;
  if (!value->is_array()) {
    (void)expected("an array");
    return result;
  }
  result.reserve(value->size());
  for (std::size_t i = 0; i < value->size(); ++i)
    result.push_back({&(*value)[i], problems, where + "[" + std::to_string(i) + "]"});
  return result;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  std::vector<std::pair<std::string, JsonView>> result;
  if (!value)
    return result;
  if (!value->is_object()) {
    (void)expected("an object");
    return result;
  }
  for (auto &[key, each] : value->get_ref<const Json::object_t &>())
    result.emplace_back(key, JsonView(&each, problems, where.empty() ? key : where + "." + key));
  return result;
}

} // namespace moert
