#include "tools/moec/Loading.h"

#include "tools/moec/Report.h"

#include "runtime/base/Npy.h"

#include <charconv>

namespace moec {

using moert::ErrorCode;
using moert::Result;
using moert::Status;

Result<std::shared_ptr<const moert::Bundle>> openBundle(const std::string &path,
                                                        const std::string &weights) {
  moert::OpenOptions options;
  options.weightsFolder = weights;
  return moert::Bundle::open(path, options);
}

Result<std::shared_ptr<const moert::Model>> loadModel(std::shared_ptr<const moert::Bundle> bundle,
                                                      unsigned threads, const std::string &variant,
                                                      const std::string &device) {
  Progress progress("loading weights");
  moert::LoadOptions options;
  options.threads = threads;
  options.variant = variant;
  options.device = device;
  options.progress = [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); };
  return moert::Model::load(std::move(bundle), options);
}

Status requireLanguageModel(const moert::Bundle &bundle) {
  if (bundle.manifest().has_language_model())
    return {};
  return {ErrorCode::InvalidArgument, "the bundle holds no language model", bundle.path(),
          "run it on tensors: moec run BUNDLE --input NAME=FILE.npy --outputs DIR"};
}

Result<std::optional<moert::Tokenizer>> loadTokenizer(const moert::Bundle &bundle) {
  const std::string &name = bundle.manifest().language_model().tokenizer();
  if (name.empty())
    return std::optional<moert::Tokenizer>();
  MOERT_ASSIGN_OR_RETURN(std::string text, bundle.readFile(name));
  MOERT_ASSIGN_OR_RETURN(moert::Tokenizer tokenizer, moert::Tokenizer::parse(text, name));
  return std::optional<moert::Tokenizer>(std::move(tokenizer));
}

static Result<std::vector<std::int32_t>> readIdFile(const std::string &path, std::int64_t highest) {
  MOERT_ASSIGN_OR_RETURN(moert::File file, moert::File::open(path));
  MOERT_ASSIGN_OR_RETURN(moert::NpyArray array, moert::readNpy(file));
  if (array.shape.size() != 1)
    return Status(ErrorCode::InvalidData,
                  "expected token ids of one dimension, found shape " +
                      moert::shapeToString(array.shape),
                  path);
  auto ids = array.integers(0, highest);
  if (!ids.isOk())
    return std::move(ids).status().in(path);
  return std::vector<std::int32_t>(ids->begin(), ids->end());
}

Result<std::vector<std::int32_t>> readIds(const std::string &text, std::uint64_t vocabulary) {
  auto highest = static_cast<std::int64_t>(vocabulary) - 1;
  if (text.starts_with("@"))
    return readIdFile(text.substr(1), highest);
  std::vector<std::int32_t> ids;
  std::size_t begin = 0;
  while (true) {
    std::size_t comma = text.find(',', begin);
    std::size_t end = comma == std::string::npos ? text.size() : comma;
    std::int64_t id = 0;
    auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, id);
    if (error != std::errc() || stop != text.data() + end || id < 0 || id > highest)
      return Status(ErrorCode::InvalidArgument,
                    "expected token ids from 0 to " + std::to_string(highest) + ", found " +
                        moert::inQuotes(std::string_view(text).substr(begin, end - begin)),
                    "--ids", "write them as 5,6,7 or as @file.npy");
    ids.push_back(static_cast<std::int32_t>(id));
    if (comma == std::string::npos)
      return ids;
    begin = comma + 1;
  }
}

} // namespace moec
