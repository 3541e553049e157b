//===- LanguageModelFiles.cpp - tokenizer and special tokens from files beside a graph
//---------------===//

#include "LanguageModelFiles.h"

#include "runtime/base/File.h"
#include "runtime/base/Json.h"

namespace mlir::moec::onnx_import {

using moert::ErrorCode;
using moert::Json;
using moert::JsonView;
using moert::Problems;
using moert::Result;
using moert::Status;

/// An object, empty when there is no such file.
static Result<Json> readObject(const moert::Folder &folder, const std::string &name) {
  if (!folder.contains(name))
    return Json::object();
  MOERT_ASSIGN_OR_RETURN(moert::File file, folder.openFile(name));
  MOERT_ASSIGN_OR_RETURN(Json json, moert::readJson(file));
  if (!json.is_object())
    return Status(ErrorCode::InvalidData, "expected an object", file.name());
  return json;
}

Result<LanguageModelFiles> readLanguageModelFiles(const std::string &path, int64_t vocabulary) {
  MOERT_ASSIGN_OR_RETURN(moert::Folder folder, moert::Folder::open(path, moert::Links::Allow));
  MOERT_ASSIGN_OR_RETURN(Json configJson, readObject(folder, "config.json"));
  MOERT_ASSIGN_OR_RETURN(Json generationJson, readObject(folder, "generation_config.json"));
  MOERT_ASSIGN_OR_RETURN(Json tokenizerJson, readObject(folder, "tokenizer_config.json"));
  Problems configProblems(moert::joinPath(path, "config.json"));
  Problems generationProblems(moert::joinPath(path, "generation_config.json"));
  Problems tokenizerProblems(moert::joinPath(path, "tokenizer_config.json"));
  JsonView config(configJson, configProblems), generation(generationJson, generationProblems);
  JsonView tokenizer(tokenizerJson, tokenizerProblems);

  auto first = [&](const char *key) {
    JsonView view = generation.optional(key);
    return view ? view : config.optional(key);
  };
  LanguageModelFiles result;
  result.maximumTokens =
      config.optional("max_position_embeddings").integer(1, INT32_MAX).value_or(0);
  result.bosToken = first("bos_token_id").integer(0, vocabulary - 1).value_or(-1);
  JsonView eos = first("eos_token_id");
  std::vector<JsonView> ends;
  if (eos && eos.raw()->is_array())
    ends = eos.elements();
  else if (eos)
    ends.push_back(eos);
  for (const JsonView &end : ends)
    if (auto id = end.integer(0, vocabulary - 1))
      result.eosTokens.push_back(*id);
  JsonView addBos = tokenizer.optional("add_bos_token");
  result.addBos = addBos.boolean().value_or(false);
  if (result.addBos && result.bosToken < 0)
    addBos.complain("prompts start with a begin-of-text token, but neither config.json nor "
                    "generation_config.json has bos_token_id");
  result.hasTokenizer = folder.contains("tokenizer.json");
  for (const Problems *problems : {&configProblems, &generationProblems, &tokenizerProblems})
    MOERT_RETURN_IF_ERROR(problems->toStatus(ErrorCode::InvalidData));
  return result;
}

} // namespace mlir::moec::onnx_import
