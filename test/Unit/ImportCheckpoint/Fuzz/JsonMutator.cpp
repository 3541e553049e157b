#include "JsonMutator.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

using nlohmann::json;

/// Every value of the document with what holds it; the document itself comes first.
static void collect(json &value, json *parent, std::vector<std::pair<json *, json *>> &places) {
  places.emplace_back(&value, parent);
  for (json &child : value)
    if (value.is_structured())
      collect(child, &value, places);
}

static std::vector<std::pair<json *, json *>> getPlaces(json &document) {
  std::vector<std::pair<json *, json *>> places;
  collect(document, nullptr, places);
  return places;
}

static const std::vector<int64_t> &getExtremes() {
  static const std::vector<int64_t> extremes = {
      0,         1,         -1,        2,         3,         7,         15,       16,
      17,        31,        32,        33,        64,        127,       128,      129,
      255,       256,       1 << 10,   1 << 12,   1 << 16,   1 << 20,   1 << 24,  INT32_MAX,
      INT32_MIN, 1LL << 32, 1LL << 40, 1LL << 53, INT64_MAX, INT64_MIN, 1LL << 62};
  return extremes;
}

/// Words that the importer knows, and paths that it must not follow.
static const std::vector<std::string> &getWords() {
  static const std::vector<std::string> words = {"",
                                                 "x",
                                                 "F32",
                                                 "BF16",
                                                 "F16",
                                                 "U8",
                                                 "I8",
                                                 "I32",
                                                 "I64",
                                                 "F8_E4M3",
                                                 "F8_E8M0",
                                                 "F4",
                                                 "BOOL",
                                                 "bfloat16",
                                                 "float32",
                                                 "float16",
                                                 "sigmoid",
                                                 "softmax",
                                                 "sqrtsoftplus",
                                                 "silu",
                                                 "situ",
                                                 "gelu",
                                                 "noaux_tc",
                                                 "mxfp4",
                                                 "fp8",
                                                 "compressed-tensors",
                                                 "mxfp4-pack-quantized",
                                                 "pack-quantized",
                                                 "ue8m0",
                                                 "yarn",
                                                 "linear",
                                                 "default",
                                                 "dynamic",
                                                 "sliding_attention",
                                                 "full_attention",
                                                 "linear_attention",
                                                 "dense",
                                                 "sparse",
                                                 "full",
                                                 "shared",
                                                 "FSSS",
                                                 "model.safetensors",
                                                 "config.json",
                                                 "../config.json",
                                                 "/dev/zero",
                                                 "a/b",
                                                 ".",
                                                 "model-00001-of-99999.safetensors"};
  return words;
}

json JsonMutator::makeValue() {
  switch (below(9)) {
  case 0:
    return nullptr;
  case 1:
    return below(2) == 0;
  case 2:
    return getWords()[below(getWords().size())];
  case 3:
    return json::array();
  case 4:
    return json::object();
  case 5:
    return json::array({getExtremes()[below(getExtremes().size())]});
  case 6:
    return json{{"a", 1}};
  case 7:
    return std::vector<double>{0.5, 1e300, -1e300, 1e-300, -0.0, 1.0}[below(6)];
  default:
    return getExtremes()[below(getExtremes().size())];
  }
}

void JsonMutator::changeNumber(json &value) {
  auto clamp = [](double number) {
    constexpr double most = 9.2e18;
    return int64_t(std::min(std::max(number, -most), most));
  };
  double number = value.get<double>();
  switch (below(6)) {
  case 0:
    value = clamp(number + 1);
    break;
  case 1:
    value = clamp(number - 1);
    break;
  case 2:
    value = clamp(number * 2);
    break;
  case 3:
    value = clamp(number / 2);
    break;
  case 4:
    value = number * 1.5;
    break;
  default:
    value = below(8) == 0 ? json(std::numeric_limits<uint64_t>::max())
                          : json(getExtremes()[below(getExtremes().size())]);
  }
}

void JsonMutator::changeString(json &value) {
  std::string text = value.get<std::string>();
  if (below(2) == 0 || text.empty()) {
    value = getWords()[below(getWords().size())];
    return;
  }
  std::size_t at = below(text.size());
  if (below(2) == 0)
    text[at] = char('!' + below(90));
  else
    text.erase(at, 1 + below(3));
  value = text;
}

void JsonMutator::rename(json &object) {
  if (!object.is_object() || object.empty())
    return;
  auto member = object.begin();
  std::advance(member, below(object.size()));
  std::string name = member.key();
  json value = std::move(member.value());
  object.erase(member);
  if (below(2) == 0 && !object.empty()) { // the name of another one
    auto other = object.begin();
    std::advance(other, below(object.size()));
    name = other.key();
  } else if (!name.empty()) {
    // Digits count layers and experts.
    std::size_t digit = name.find_first_of("0123456789");
    std::size_t at = digit != std::string::npos ? digit : below(name.size());
    name[at] = char('0' + below(10));
  }
  object[name] = std::move(value);
}

void JsonMutator::change(json &document, const json &other) {
  std::vector<Place> places = getPlaces(document);
  auto [value, parent] = places[below(places.size())];
  switch (below(8)) {
  case 0:
    *value = makeValue();
    return;
  case 1: // is missing
    if (parent && parent->is_object()) {
      for (auto member = parent->begin(); member != parent->end(); ++member)
        if (&member.value() == value) {
          parent->erase(member);
          return;
        }
    } else if (parent) {
      parent->erase(value - parent->get_ref<json::array_t &>().data());
    }
    return;
  case 2:
    for (auto &[object, ignored] : places)
      if (object->is_object() && below(3) == 0)
        return rename(*object);
    return;
  case 3: // what is there once more, elsewhere
    *value = json(*places[below(places.size())].first);
    return;
  case 4:
    if (value->is_array()) {
      json element = value->empty() ? makeValue() : json(value->front());
      value->push_back(std::move(element));
      return;
    }
    [[fallthrough]];
  case 5:
    if (other.is_object() && !other.empty() && document.is_object()) {
      auto member = other.begin();
      std::advance(member, below(other.size()));
      document[member.key()] = member.value();
      return;
    }
    [[fallthrough]];
  default:
    if (value->is_number())
      changeNumber(*value);
    else if (value->is_string())
      changeString(*value);
    else if (value->is_boolean())
      *value = !value->get<bool>();
    else if (value->is_null() || below(4) == 0)
      *value = makeValue();
  }
}

void repairOffsets(json &header) {
  static const std::map<std::string, unsigned> sizes = {
      {"F64", 8}, {"F32", 4}, {"BF16", 2}, {"F16", 2},     {"U8", 1},     {"I8", 1},
      {"I32", 4}, {"I64", 8}, {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1}};
  if (!header.is_object())
    return;
  uint64_t offset = 0;
  for (auto &[name, tensor] : header.items()) {
    if (name == "__metadata__" || !tensor.is_object() || !tensor.contains("shape") ||
        !tensor["shape"].is_array() || !tensor.contains("dtype") || !tensor["dtype"].is_string())
      continue;
    auto size = sizes.find(tensor["dtype"].get<std::string>());
    if (size == sizes.end())
      continue;
    unsigned __int128 bytes = size->second;
    bool isSound = true;
    for (const json &dimension : tensor["shape"]) {
      isSound &= dimension.is_number_integer() && dimension >= 0;
      if (!isSound)
        break;
      bytes *= dimension.get<uint64_t>();
      isSound = bytes < (uint64_t(1) << 40);
      if (!isSound)
        break;
    }
    if (!isSound)
      continue;
    tensor["data_offsets"] = {offset, offset + uint64_t(bytes)};
    offset += uint64_t(bytes);
  }
}
