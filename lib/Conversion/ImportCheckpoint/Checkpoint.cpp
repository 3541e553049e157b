#include "Checkpoint.h"

#include <algorithm>
#include <charconv>

namespace mlir::moec {

using moert::ErrorCode;
using moert::inQuotes;
using moert::JsonView;
using moert::Status;

static constexpr std::string_view indexName = "model.safetensors.index.json";
// A model of today has about a hundred shards.
static constexpr std::size_t mostShards = 10'000;

bool matchesPattern(std::string_view pattern, std::string_view text) {
  // Greedy matching with one point to go back to: the last '*'.
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

// The problem of one file as an item of the whole list: without the folder, its own list one level
// deeper.
static std::string describe(const Status &status, const moert::Folder &folder) {
  std::string text = status.location();
  if (text.starts_with(folder.path() + "/"))
    text.erase(0, folder.path().size() + 1);
  if (!text.empty())
    text += ": ";
  for (char c : status.message())
    text += c == '\n' ? "\n  " : std::string(1, c);
  if (!status.hint().empty())
    text += " (" + status.hint() + ")";
  return text;
}

moert::Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::string &path) {
  MOERT_ASSIGN_OR_RETURN(moert::Folder folder, moert::Folder::open(path, moert::Links::Allow));
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint(std::move(folder)));
  checkpoint->load("config.json", /*required=*/true);
  checkpoint->openShards();
  return checkpoint;
}

Checkpoint::Document *Checkpoint::load(const std::string &name, bool required) {
  auto [place, isNew] = documents.try_emplace(name);
  if (!isNew)
    return place->second.get();
  if (!required && !folder.contains(name))
    return nullptr;
  auto file = folder.openFile(name);
  if (!file.isOk()) {
    complain(describe(file.status(), folder));
    return nullptr;
  }
  auto content = moert::readJson(*file);
  if (!content.isOk()) {
    complain(describe(content.status(), folder));
    return nullptr;
  }
  if (!content->is_object()) {
    complain(name + ": expected an object, found " + content->dump().substr(0, 40));
    return nullptr;
  }
  place->second.reset(new Document{*std::move(content), moert::Problems(name)});
  return place->second.get();
}

static JsonView nullView() {
  static const moert::Json null;
  static moert::Problems none("");
  return JsonView(null, none).optional("");
}

// A string as a document may hold it: what is not UTF-8 is replaced.
static moert::Json makeString(std::string_view text) {
  std::string quoted =
      moert::Json(std::string(text)).dump(-1, ' ', false, moert::Json::error_handler_t::replace);
  return moert::Json::parse(quoted, nullptr, /*allow_exceptions=*/false);
}

void Checkpoint::set(const std::string &setting) {
  Document *document = load("config.json", /*required=*/false);
  if (!document)
    return; // which was said already
  std::string where = "--set " + setting + ": ";
  std::size_t equals = setting.find('=');
  bool isNew = setting.starts_with('+');
  std::string_view path = std::string_view(setting).substr(isNew, equals - isNew);
  if (equals == std::string::npos || path.empty())
    return complain(where + "expected FIELD=VALUE");
  moert::Json *place = &document->content;
  for (bool isLast = false; !isLast;) {
    std::size_t dot = path.find('.');
    std::string key(path.substr(0, dot));
    isLast = dot == std::string_view::npos;
    path.remove_prefix(isLast ? path.size() : dot + 1);
    if (!place->is_object() || (!place->contains(key) && !(isLast && isNew)))
      return complain(where + "config.json has no field " + inQuotes(key) +
                      (isLast ? "; write '+' before a field to add it" : ""));
    if (isLast && isNew && place->contains(key))
      return complain(where + "config.json has the field " + inQuotes(key) +
                      " already; leave out the '+'");
    place = &(*place)[key];
  }
  std::string_view text = std::string_view(setting).substr(equals + 1);
  auto value = moert::parseJson(text, "--set");
  *place = value.isOk() ? *std::move(value) : makeString(text);
}

JsonView Checkpoint::config() { return json("config.json"); }

JsonView Checkpoint::json(const std::string &name) {
  Document *document = load(name, /*required=*/false);
  return document ? JsonView(document->content, document->problems) : nullView();
}

bool Checkpoint::hasTensor(std::string_view name) const {
  return tensors.find(name) != tensors.end() || weightMap.find(name) != weightMap.end();
}

bool Checkpoint::hasJsonProblems() const {
  return std::any_of(documents.begin(), documents.end(), [](const auto &each) {
    return each.second && !each.second->problems.empty();
  });
}

void Checkpoint::openShards() {
  readIndex();
  for (const std::string &name : findShards())
    openShard(name);
  checkIndex();
}

void Checkpoint::readIndex() {
  std::string name(indexName);
  hasIndex = folder.contains(name);
  if (!hasIndex)
    return;
  Document *document = load(name, /*required=*/true);
  if (!document)
    return;
  JsonView map = JsonView(document->content, document->problems)["weight_map"];
  for (auto &[tensor, shard] : map.members())
    if (auto file = shard.string())
      weightMap.emplace_hint(weightMap.end(), tensor, *file); // members are sorted
  document->content = moert::Json(); // large, and not looked at again
}

// "model-00002-of-00003.safetensors": the names of all three; otherwise only `name`.
static std::vector<std::string> siblings(const std::string &name) {
  // PREFIX-DDDDD-of-DDDDD.safetensors
  std::string_view suffix = ".safetensors";
  constexpr std::size_t digits = 5, tail = digits + 4 + digits; // "00002-of-00003"
  if (name.size() < tail + suffix.size())
    return {name};
  std::size_t begin = name.size() - suffix.size() - tail;
  std::string_view total(name.data() + begin + digits + 4, digits);
  auto isNumber = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (name.compare(begin + digits, 4, "-of-") != 0 || !isNumber(total) ||
      !isNumber({name.data() + begin, digits}))
    return {name};
  std::size_t count = 0;
  for (char c : total)
    count = count * 10 + (c - '0');
  if (count > mostShards)
    return {name};
  std::vector<std::string> result;
  for (std::size_t i = 1; i <= count; ++i) {
    std::string number = std::to_string(i);
    number.insert(0, digits - number.size(), '0');
    result.push_back(name.substr(0, begin) + number + name.substr(begin + digits));
  }
  return result;
}

std::vector<std::string> Checkpoint::findShards() {
  std::set<std::string> names;
  if (hasIndex) {
    for (auto &[tensor, file] : weightMap)
      names.insert(file);
    if (names.size() > mostShards) {
      complain(std::string(indexName) + ": weight_map names " + std::to_string(names.size()) +
               " files; at most " + std::to_string(mostShards) + " are accepted");
      names.clear();
    }
    return {names.begin(), names.end()};
  }
  if (folder.contains("model.safetensors"))
    return {"model.safetensors"};
  auto listed = folder.list();
  if (!listed.isOk()) {
    complain(describe(listed.status(), folder));
    return {};
  }
  for (const std::string &name : *listed)
    if (name.starts_with("model") && name.ends_with(".safetensors"))
      for (std::string &sibling : siblings(name))
        names.insert(std::move(sibling));
  if (names.empty())
    complain("no weights: expected " + std::string(indexName) +
             ", model.safetensors or model-0000N-of-0000M.safetensors (weights in another format "
             "have to be converted to safetensors)");
  return {names.begin(), names.end()};
}

void Checkpoint::openShard(const std::string &name) {
  auto file = folder.openFile(name);
  if (!file.isOk()) {
    brokenShards.insert(name);
    complain(describe(file.status(), folder));
    return;
  }
  auto shard = moert::SafetensorsFile::open(*std::move(file));
  if (!shard.isOk()) {
    brokenShards.insert(name);
    complain(describe(shard.status(), folder));
    return;
  }
  shards.push_back(std::make_unique<moert::SafetensorsFile>(*std::move(shard)));
  for (const moert::SafetensorsTensor &tensor : shards.back()->tensors()) {
    auto [place, isNew] = tensors.try_emplace(tensor.name, CheckpointTensor{name, &tensor, false});
    if (!isNew)
      complain("tensor " + inQuotes(tensor.name) +
               " is in two files: " + inQuotes(place->second.file) + " and " + inQuotes(name));
  }
}

void Checkpoint::checkIndex() {
  if (!hasIndex || weightMap.empty())
    return;
  std::string place = std::string(indexName) + ": ";
  for (auto &[name, file] : weightMap) {
    if (brokenShards.contains(file))
      continue;
    auto found = tensors.find(name);
    if (found == tensors.end())
      complain(place + "tensor " + inQuotes(name) + " should be in " + inQuotes(file) +
               ", which has no such tensor");
    else if (found->second.file != file)
      complain(place + "tensor " + inQuotes(name) + " should be in " + inQuotes(file) +
               ", but is in " + inQuotes(found->second.file));
  }
  for (auto &[name, tensor] : tensors)
    if (!weightMap.contains(name))
      complain(place + "tensor " + inQuotes(name) + " of " + inQuotes(tensor.file) +
               " is not listed");
}

const CheckpointTensor *Checkpoint::findTensor(std::string_view name) const {
  auto place = tensors.find(name);
  return place == tensors.end() ? nullptr : &place->second;
}

const CheckpointTensor *Checkpoint::take(const std::string &name,
                                         std::span<const std::int64_t> shape,
                                         std::span<const moert::ElementType> accepted) {
  auto place = tensors.find(name);
  if (place == tensors.end()) {
    // Without an index any tensor may have been in a shard that could not be read.
    auto listed = weightMap.find(name);
    bool alreadySaid = hasIndex ? listed != weightMap.end() : !brokenShards.empty();
    if (!alreadySaid)
      complain("tensor " + inQuotes(name) + " is missing; expected shape " +
               moert::shapeToString(shape));
    return nullptr;
  }
  CheckpointTensor &tensor = place->second;
  tensor.used = true;
  std::string where = "tensor " + inQuotes(name) + " of " + inQuotes(tensor.file) + ": ";
  bool sound = true;
  if (!std::equal(shape.begin(), shape.end(), tensor.entry->shape.begin(),
                  tensor.entry->shape.end())) {
    complain(where + "expected shape " + moert::shapeToString(shape) + ", found " +
             moert::shapeToString(tensor.entry->shape));
    sound = false;
  }
  if (std::find(accepted.begin(), accepted.end(), tensor.entry->type) == accepted.end()) {
    std::string names;
    for (moert::ElementType type : accepted)
      names += (names.empty() ? "" : " or ") + std::string(elementTypeName(type));
    bool isKnown = tensor.entry->type != moert::ElementType::Unspecified;
    complain(where + "expected element type " + names + ", found " +
             (isKnown ? std::string(elementTypeName(tensor.entry->type))
                      : inQuotes(tensor.entry->typeName) + ", which is unknown"));
    sound = false;
  }
  return sound ? &tensor : nullptr;
}

// The number behind "layers." in a tensor's name, or none.
static std::optional<std::int64_t> getLayer(std::string_view name) {
  constexpr std::string_view marker = "layers.";
  std::size_t at = name.find(marker);
  if (at == std::string_view::npos || (at != 0 && name[at - 1] != '.'))
    return std::nullopt;
  std::int64_t layer = 0;
  const char *begin = name.data() + at + marker.size(), *end = name.data() + name.size();
  auto [last, error] = std::from_chars(begin, end, layer);
  if (error != std::errc() || last == end || *last != '.')
    return std::nullopt;
  return layer;
}

void Checkpoint::checkUnused(std::span<const std::string> allowed,
                             std::optional<std::pair<std::int64_t, std::int64_t>> layers) {
  for (auto &[name, tensor] : tensors) {
    std::optional<std::int64_t> layer = layers ? getLayer(name) : std::nullopt;
    if (layer && (*layer < layers->first || *layer > layers->second))
      continue;
    auto matches = [&](const std::string &pattern) { return matchesPattern(pattern, name); };
    if (tensor.used || std::any_of(allowed.begin(), allowed.end(), matches) ||
        std::any_of(knownUnused.begin(), knownUnused.end(), matches))
      continue;
    hint = "config.json may describe another model; where the tensors are not needed, "
           "--allow-unused=PATTERN accepts them";
    complain("tensor " + inQuotes(name) + " of " + inQuotes(tensor.file) +
             " is not part of this model");
  }
}

Status Checkpoint::status() const {
  moert::Problems all(folder.path());
  // What several parts of the importer read is complained about once.
  std::set<std::string> known;
  for (const auto &[name, document] : documents)
    if (document)
      for (const std::string &message : document->problems.listed())
        if (known.insert(name + ": " + message).second)
          all.add(name + ": " + message);
  for (const std::string &problem : problems)
    all.add(problem);
  return all.toStatus(ErrorCode::InvalidData, hint);
}

} // namespace mlir::moec
