// The C interface: tokenizers, sessions, generation.
#include "runtime/api/Handles.h"
#include "runtime/session/Generate.h"

#include <algorithm>

using namespace moert;
using namespace moert::api;

moert_error *moert_tokenizer_create(const moert_model *model, moert_tokenizer **tokenizer) {
  if (!model || !tokenizer)
    return badArgument("moert_tokenizer_create: model or tokenizer is NULL");
  const Bundle &bundle = model->content->bundle();
  const std::string &path = bundle.manifest().language_model().tokenizer();
  if (path.empty())
    return toError(Status(ErrorCode::NotFound, "the bundle has no tokenizer", bundle.path(),
                          "give token ids instead of text"));
  auto text = bundle.readFile(path);
  MOERT_API_RETURN_IF_ERROR(toError(text.status()));
  auto result = Tokenizer::parse(*text, joinPath(bundle.path(), path));
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  *tokenizer = new moert_tokenizer{*std::move(result)};
  return nullptr;
}

void moert_tokenizer_free(moert_tokenizer *tokenizer) { delete tokenizer; }

moert_error *moert_tokenizer_encode(const moert_tokenizer *tokenizer, const char *text,
                                    size_t bytes, int32_t **ids, size_t *count) {
  if (!tokenizer || (bytes && !text) || !ids || !count)
    return badArgument("moert_tokenizer_encode: an argument is NULL");
  auto result = tokenizer->content.encode({text, bytes});
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  MOERT_API_RETURN_IF_ERROR(copyOut(result->data(), result->size(), 0, ids));
  *count = result->size();
  return nullptr;
}

moert_error *moert_tokenizer_decode(const moert_tokenizer *tokenizer, const int32_t *ids,
                                    size_t count, int special, char **text, size_t *bytes) {
  if (!tokenizer || (count && !ids) || !text)
    return badArgument("moert_tokenizer_decode: an argument is NULL");
  std::string result = tokenizer->content.decode({ids, count}, special != 0);
  MOERT_API_RETURN_IF_ERROR(copyOut(result.data(), result.size(), 1, text));
  if (bytes)
    *bytes = result.size();
  return nullptr;
}

const char *moert_tokenizer_bytes(const moert_tokenizer *tokenizer, int32_t id, int special,
                                  size_t *bytes) {
  std::string_view text =
      tokenizer ? tokenizer->content.bytes(id, special != 0) : std::string_view();
  if (bytes)
    *bytes = text.size();
  return text.data() ? text.data() : "";
}

moert_error *moert_session_create(const moert_model *model, const moert_session_options *options,
                                  moert_session **session) {
  if (!model || !session)
    return badArgument("moert_session_create: model or session is NULL");
  moert_session_options given = readOptions(options);
  SessionOptions wanted;
  wanted.maximumTokens = given.maximum_tokens;
  wanted.maximumStateBytes = given.maximum_state_bytes;
  auto result = Session::create(model->content, wanted);
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  *session = new moert_session{*std::move(result)};
  return nullptr;
}

void moert_session_free(moert_session *session) { delete session; }

moert_error *moert_sequence_create(moert_session *session, moert_sequence *sequence) {
  if (!session || !sequence)
    return badArgument("moert_sequence_create: an argument is NULL");
  auto result = session->content.createSequence();
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  *sequence = result->id;
  return nullptr;
}

moert_error *moert_sequence_release(moert_session *session, moert_sequence sequence) {
  if (!session)
    return badArgument("moert_sequence_release: session is NULL");
  return toError(session->content.release({sequence}));
}

moert_error *moert_sequence_length(const moert_session *session, moert_sequence sequence,
                                   uint64_t *length) {
  if (!session || !length)
    return badArgument("moert_sequence_length: an argument is NULL");
  auto result = session->content.length({sequence});
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  *length = *result;
  return nullptr;
}

moert_error *moert_sequence_truncate(moert_session *session, moert_sequence sequence,
                                     uint64_t length) {
  if (!session)
    return badArgument("moert_sequence_truncate: session is NULL");
  return toError(session->content.truncate({sequence}, length));
}

moert_error *moert_sequence_fork(moert_session *session, moert_sequence sequence,
                                 moert_sequence *fork) {
  if (!session || !fork)
    return badArgument("moert_sequence_fork: an argument is NULL");
  auto result = session->content.fork({sequence});
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  *fork = result->id;
  return nullptr;
}

moert_error *moert_snapshot_take(moert_session *session, moert_sequence sequence,
                                 moert_snapshot **snapshot) {
  if (!session || !snapshot)
    return badArgument("moert_snapshot_take: an argument is NULL");
  auto result = session->content.snapshot({sequence});
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  *snapshot = new moert_snapshot{*std::move(result)};
  return nullptr;
}

moert_error *moert_snapshot_restore(moert_session *session, moert_sequence sequence,
                                    const moert_snapshot *snapshot) {
  if (!session || !snapshot)
    return badArgument("moert_snapshot_restore: an argument is NULL");
  return toError(session->content.restore({sequence}, snapshot->content));
}

void moert_snapshot_free(moert_snapshot *snapshot) { delete snapshot; }

static moert_error *convertParts(const moert_step_part *parts, size_t count,
                                 std::vector<StepPart> &converted) {
  converted.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if ((parts[i].count && !parts[i].tokens) || parts[i].logits > MOERT_LOGITS_ALL)
      return badArgument("a part's tokens are NULL or its logits no MOERT_LOGITS_ number");
    converted.push_back({{parts[i].sequence},
                         {parts[i].tokens, parts[i].count},
                         static_cast<LogitRows>(parts[i].logits)});
  }
  return nullptr;
}

moert_error *moert_session_step(moert_session *session, const moert_step_part *parts, size_t count,
                                moert_logits *logits) {
  if (!logits)
    return badArgument("moert_session_step: an argument is NULL");
  MOERT_API_RETURN_IF_ERROR(moert_session_advance(session, parts, count, nullptr));
  return moert_session_logits(session, logits);
}

moert_error *moert_session_advance(moert_session *session, const moert_step_part *parts,
                                   size_t count, size_t *rows) {
  if (!session || (count && !parts))
    return badArgument("a step's session or parts are NULL");
  std::vector<StepPart> converted;
  MOERT_API_RETURN_IF_ERROR(convertParts(parts, count, converted));
  MOERT_API_RETURN_IF_ERROR(toError(session->content.advance(converted)));
  if (rows)
    *rows = session->content.logitRows();
  return nullptr;
}

moert_error *moert_session_logits(moert_session *session, moert_logits *logits) {
  if (!session || !logits)
    return badArgument("moert_session_logits: an argument is NULL");
  auto result = session->content.logits();
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  *logits = {result->data, result->rows, result->vocabulary};
  return nullptr;
}

moert_error *moert_session_choose(moert_session *session, const moert_choice *choices, size_t count,
                                  int32_t *tokens) {
  if (!session || (count && (!choices || !tokens)))
    return badArgument("moert_session_choose: an argument is NULL");
  std::vector<TokenChoice> converted;
  converted.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    converted.push_back({static_cast<std::size_t>(choices[i].row), choices[i].temperature,
                         choices[i].top_k, choices[i].top_p, choices[i].random});
  auto result = session->content.choose(converted);
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  std::copy(result->begin(), result->end(), tokens);
  return nullptr;
}

moert_error *moert_generate(moert_session *session, const int32_t *prompt, size_t prompt_count,
                            const moert_generate_options *options, int32_t **ids, size_t *count) {
  if (!session || (prompt_count && !prompt) || !ids || !count)
    return badArgument("moert_generate: an argument is NULL");
  moert_generate_options given = readOptions(options);
  GenerateOptions wanted;
  for (std::size_t i = 0; i < given.image_count; ++i) {
    if (!given.images || !given.images[i])
      return badArgument("moert_generate: an image is NULL");
    wanted.images.push_back(given.images[i]->content);
  }
  if (given.maximum_tokens != 0)
    wanted.maximumTokens = given.maximum_tokens;
  wanted.sampling.temperature = given.temperature;
  wanted.sampling.topK = given.top_k;
  wanted.sampling.topP = given.top_p == 0 ? 1 : given.top_p;
  wanted.sampling.seed = given.seed;
  wanted.ignoreEos = given.ignore_end != 0;
  wanted.chunk = given.chunk;
  if (given.on_token)
    wanted.onToken = [&](std::int32_t token) { return given.on_token(given.context, token) == 0; };
  auto result = generate(session->content, {prompt, prompt_count}, wanted);
  MOERT_API_RETURN_IF_ERROR(toError(result.status()));
  MOERT_API_RETURN_IF_ERROR(copyOut(result->ids.data(), result->ids.size(), 0, ids));
  *count = result->ids.size();
  return nullptr;
}
