// moec tokenize: text to token ids and back, without running a model.

#include "tools/moec/Loading.h"
#include "tools/moec/Report.h"

#include "runtime/session/TiktokenFiles.h"

#include <chrono>
#include <cstdio>

namespace moec {

using moert::Result;
using moert::Tokenizer;

namespace {

bool isFolderWithTokenizer(const std::string &path) {
  return moert::fileExists(moert::joinPath(path, "tokenizer.json")) ||
         moert::fileExists(moert::joinPath(path, "tiktoken.model"));
}

// Of a folder with a tokenizer's files, or else of a bundle.
Result<Tokenizer> loadAnyTokenizer(const std::string &path) {
  if (isFolderWithTokenizer(path)) {
    MOERT_ASSIGN_OR_RETURN(std::string text, moert::readTokenizerFiles(path));
    return Tokenizer::parse(text, moert::joinPath(path, "tokenizer.json"));
  }
  MOERT_ASSIGN_OR_RETURN(auto bundle, openBundle(path, ""));
  MOERT_ASSIGN_OR_RETURN(std::optional<Tokenizer> tokenizer, loadTokenizer(*bundle));
  if (!tokenizer)
    return moert::Status(moert::ErrorCode::NotFound, "the bundle has no tokenizer", path);
  return *std::move(tokenizer);
}

Result<std::string> readText(const std::string &path) {
  MOERT_ASSIGN_OR_RETURN(moert::File file, moert::File::open(path));
  return file.readAll(std::uint64_t(1) << 30);
}

std::string joined(const std::vector<std::int32_t> &ids) {
  std::string text;
  for (std::int32_t id : ids)
    text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

} // namespace

ExitCode runTokenize(const TokenizeCommand &command) {
  MOEC_ASSIGN_OR_FAIL(Tokenizer tokenizer, loadAnyTokenizer(command.input));
  if (!command.ids.empty()) {
    MOEC_ASSIGN_OR_FAIL(auto ids, readIds(command.ids, INT32_MAX));
    printNow(tokenizer.decode(ids, command.special) + "\n");
    return ExitCode::Success;
  }
  std::vector<std::string> texts;
  if (command.hasText)
    texts.push_back(command.text);
  for (const std::string &file : command.files) {
    MOEC_ASSIGN_OR_FAIL(std::string text, readText(file));
    texts.push_back(std::move(text));
  }
  double seconds = 0;
  for (const std::string &text : texts) {
    auto begin = std::chrono::steady_clock::now();
    MOEC_ASSIGN_OR_FAIL(auto ids, tokenizer.encode(text));
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    printNow(joined(ids) + "\n");
  }
  if (command.timing)
    std::fprintf(stderr, "%.6f s\n", seconds);
  return ExitCode::Success;
}

} // namespace moec
