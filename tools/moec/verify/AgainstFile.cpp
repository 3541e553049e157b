#include "tools/moec/verify/AgainstFile.h"

#include <charconv>
#include <cstdint>
#include <cstring>

namespace moec::verify {

using moert::ElementType;
using moert::Result;
using moert::SafetensorsTensor;
using moert::Status;

namespace {

// ("layers.12", "layers.") -> 12.
std::optional<std::int64_t> numberAfter(std::string_view name, std::string_view prefix) {
  std::int64_t number = 0;
  if (!name.starts_with(prefix) || name.size() == prefix.size())
    return std::nullopt;
  name.remove_prefix(prefix.size());
  auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || stop != name.data() + name.size() || number < 0)
    return std::nullopt;
  return number;
}

template <typename T>
T at(const std::vector<std::byte> &bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

class Reader {
public:
  Reader(const moert::SafetensorsFile &file, const std::string &path, std::uint64_t vocabulary,
         std::int64_t layers)
      : file(file), vocabulary(vocabulary), layers(layers), problems(path) {}

  Result<std::vector<AgainstSequence>> read();

private:
  std::vector<std::int32_t> readTokens(const SafetensorsTensor &tensor);
  std::optional<Rows> readRows(const SafetensorsTensor &tensor, std::size_t rows, std::size_t first,
                               bool mayBeIntegers = false);
  void readSequence(AgainstSequence &sequence, const SafetensorsTensor &tokens);
  Result<std::vector<std::byte>> bytesOf(const SafetensorsTensor &tensor) {
    std::vector<std::byte> bytes(tensor.bytes);
    MOERT_RETURN_IF_ERROR(file.read(tensor, bytes));
    return bytes;
  }

  const moert::SafetensorsFile &file;
  std::uint64_t vocabulary;
  std::int64_t layers;
  moert::Problems problems;
};

std::vector<std::int32_t> Reader::readTokens(const SafetensorsTensor &tensor) {
  bool isLong = tensor.type == ElementType::I64;
  if ((!isLong && tensor.type != ElementType::I32) || tensor.shape.size() != 1 ||
      tensor.shape[0] == 0) {
    problems.add(tensor.name + ": expected i32 or i64 [T] with at least one token, found " +
                 std::string(moert::elementTypeName(tensor.type)) + " " +
                 moert::shapeToString(tensor.shape));
    return {};
  }
  auto bytes = bytesOf(tensor);
  if (!bytes.isOk()) {
    problems.add(bytes.status().toString());
    return {};
  }
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.shape[0]); ++i) {
    std::int64_t id = isLong ? at<std::int64_t>(*bytes, i) : at<std::int32_t>(*bytes, i);
    if (id < 0 || static_cast<std::uint64_t>(id) >= vocabulary) {
      problems.add(tensor.name + ": token " + std::to_string(i) + " is " + std::to_string(id) +
                   ", expected ids from 0 to " + std::to_string(vocabulary - 1) +
                   " (the model's vocabulary)");
      return {};
    }
    tokens.push_back(static_cast<std::int32_t>(id));
  }
  return tokens;
}

std::optional<Rows> Reader::readRows(const SafetensorsTensor &tensor, std::size_t rows,
                                     std::size_t first, bool mayBeIntegers) {
  bool isInteger = tensor.type == ElementType::I32 || tensor.type == ElementType::I64;
  bool isNumber = tensor.type == ElementType::F32 || tensor.type == ElementType::F64 ||
                  tensor.type == ElementType::BF16 || tensor.type == ElementType::F16 ||
                  (isInteger && mayBeIntegers);
  if (!isNumber || tensor.shape.size() < 2 || tensor.shape[0] != static_cast<std::int64_t>(rows)) {
    problems.add(tensor.name + ": expected f32, f64, bf16" +
                 (mayBeIntegers ? ", f16, i32 or i64 [" : " or f16 [") + std::to_string(rows) +
                 ", ...], a row for each token, found " +
                 std::string(moert::elementTypeName(tensor.type)) + " " +
                 moert::shapeToString(tensor.shape));
    return std::nullopt;
  }
  auto bytes = bytesOf(tensor);
  if (!bytes.isOk()) {
    problems.add(bytes.status().toString());
    return std::nullopt;
  }
  Rows result{tensor.name, first, rows, 1, isInteger, {}};
  for (std::size_t d = 1; d < tensor.shape.size(); ++d)
    result.width *= static_cast<std::size_t>(tensor.shape[d]);
  result.values.resize(rows * result.width);
  for (std::size_t i = 0; i < result.values.size(); ++i)
    result.values[i] =
        tensor.type == ElementType::F32   ? at<float>(*bytes, i)
        : tensor.type == ElementType::F64 ? at<double>(*bytes, i)
        : tensor.type == ElementType::I32 ? at<std::int32_t>(*bytes, i)
        : tensor.type == ElementType::I64 ? static_cast<double>(at<std::int64_t>(*bytes, i))
        : tensor.type == ElementType::F16 ? moert::floatFromF16(at<std::uint16_t>(*bytes, i))
                                          : moert::floatFromBf16(at<std::uint16_t>(*bytes, i));
  for (double value : result.values)
    if (isInteger && (value < INT32_MIN || value > INT32_MAX)) {
      problems.add(tensor.name + ": expected numbers of 32 bits");
      return std::nullopt;
    }
  return result;
}

void Reader::readSequence(AgainstSequence &sequence, const SafetensorsTensor &tokens) {
  sequence.tokens = readTokens(tokens);
  std::size_t count = sequence.tokens.size();
  if (count == 0)
    return;
  for (const SafetensorsTensor &tensor : file.tensors()) {
    std::string_view name = tensor.name;
    if (!name.starts_with(sequence.name))
      continue;
    name.remove_prefix(sequence.name.size());
    auto last = numberAfter(name, "logits_last");
    if (name == "logits" || last) {
      std::size_t rows = last ? static_cast<std::size_t>(*last) : count;
      if (rows > count) {
        problems.add(tensor.name + ": there are " + std::to_string(count) + " tokens only");
        continue;
      }
      auto logits = readRows(tensor, rows, count - rows);
      if (logits && logits->width != vocabulary)
        problems.add(tensor.name + ": expected [" + std::to_string(rows) + ", " +
                     std::to_string(vocabulary) + "] (the model's vocabulary), found " +
                     moert::shapeToString(tensor.shape));
      else if (logits && (!sequence.logits || sequence.logits->count < rows))
        sequence.logits = std::move(logits);
      continue;
    }
    std::optional<std::int64_t> layer = numberAfter(name, "layers."), number = 0;
    if (name == "embedding")
      layer = -1;
    if (auto hidden = numberAfter(name, "hidden."); hidden && *hidden < layers)
      layer = *hidden - 1;
    if (std::size_t dot = name.rfind('.'); !layer && dot != name.npos) { // layers.N.K
      layer = numberAfter(name.substr(0, dot), "layers.");
      number = numberAfter(name.substr(dot), ".");
    }
    if (!layer || !number)
      continue;
    if (auto rows = readRows(tensor, count, 0, /*mayBeIntegers=*/*number > 0))
      sequence.layers[{*layer, *number}] = *std::move(rows);
  }
  if (!sequence.logits && sequence.layers.empty())
    problems.add(tokens.name + ": nothing to compare with: expected " + sequence.name + "logits, " +
                 sequence.name + "logits_lastN, " + sequence.name + "embedding or " +
                 sequence.name + "layers.N beside it");
}

Result<std::vector<AgainstSequence>> Reader::read() {
  std::vector<AgainstSequence> sequences;
  for (const SafetensorsTensor &tensor : file.tensors()) {
    if (tensor.name != "tokens" && !tensor.name.ends_with(".tokens"))
      continue;
    sequences.push_back({tensor.name.substr(0, tensor.name.size() - 6), {}, {}, {}});
    readSequence(sequences.back(), tensor);
  }
  if (sequences.empty()) {
    std::string names;
    for (const SafetensorsTensor &tensor : file.tensors())
      names += (names.empty() ? "" : ", ") + tensor.name;
    problems.add("expected a tensor 'tokens' (or 'NAME.tokens' for each of several sequences), i32 "
                 "[T], found " +
                 (names.empty() ? "no tensors" : names) + "; 'moec verify --help' tells the names");
  }
  MOERT_RETURN_IF_ERROR(problems.toStatus(moert::ErrorCode::InvalidData));
  return sequences;
}

} // namespace

Result<std::vector<AgainstSequence>>
readAgainstFile(const std::string &path, std::uint64_t vocabulary, std::int64_t layers) {
  MOERT_ASSIGN_OR_RETURN(moert::File file, moert::File::open(path));
  auto opened = moert::SafetensorsFile::open(std::move(file));
  if (!opened.isOk())
    return std::move(opened).status().in(path);
  return Reader(*opened, path, vocabulary, layers).read();
}

} // namespace moec::verify
