// moec run, for language models.

#include "tools/moec/Loading.h"
#include "tools/moec/Reference.h"
#include "tools/moec/Report.h"
#include "tools/moec/RunTensors.h"

#include "runtime/base/Npy.h"
#include "runtime/device/Device.h"
#include "runtime/session/Generate.h"
#include "runtime/session/Timeline.h"

#include <algorithm>

namespace moec {

using moert::Bundle;
using moert::ErrorCode;
using moert::GenerateOptions;
using moert::GenerateResult;
using moert::Result;
using moert::Status;
using moert::Tokenizer;

namespace {

Result<std::vector<std::int32_t>> readPrompt(const RunCommand &command, const Bundle &bundle,
                                             const std::optional<Tokenizer> &tokenizer) {
  const moec::bundle::LanguageModel &language = bundle.manifest().language_model();
  if (!command.hasPrompt)
    return readIds(command.ids, language.vocabulary());
  if (!tokenizer)
    return Status(ErrorCode::InvalidArgument, "the bundle has no tokenizer", bundle.path(),
                  "give the prompt as --ids, or compile the model again with --tokenizer DIR");
  MOERT_ASSIGN_OR_RETURN(std::vector<std::int32_t> ids, tokenizer->encode(command.prompt));
  if (language.add_bos())
    ids.insert(ids.begin(), static_cast<std::int32_t>(language.bos_token()));
  if (ids.empty())
    return Status(ErrorCode::InvalidArgument, "the prompt is empty", "--prompt",
                  "this model begins without a begin-of-text token: give some text");
  return ids;
}

// Prints tokens as they arrive: as text, or as numbers where there is no tokenizer.
class Stream {
public:
  Stream(const std::optional<Tokenizer> &tokenizer, bool special, bool silent) : silent(silent) {
    if (tokenizer)
      decoder.emplace(*tokenizer, special);
  }
  void add(std::int32_t id) {
    if (silent)
      return;
    printNow(decoder ? decoder->add(id) : (isFirst ? "" : ",") + std::to_string(id));
    isFirst = false;
  }
  void finish() {
    if (!silent)
      printNow((decoder ? decoder->finish() : std::string()) + "\n");
  }

private:
  std::optional<moert::StreamDecoder> decoder;
  bool silent;
  bool isFirst = true;
};

const char *reasonName(moert::StopReason reason) {
  switch (reason) {
  case moert::StopReason::MaximumTokens:
    return "maximum_tokens";
  case moert::StopReason::EndOfText:
    return "end_of_text";
  case moert::StopReason::Context:
    return "context";
  case moert::StopReason::Caller:
    return "caller";
  }
  return "";
}

// As many images as the prompt has places for: before anything is loaded.
Status checkImages(const RunCommand &command, const Bundle &bundle,
                   std::span<const std::int32_t> prompt,
                   const std::optional<Tokenizer> &tokenizer) {
  const moec::bundle::Vision *vision = moert::findVision(bundle);
  if (!vision)
    return command.images.empty() ? Status() : moert::requireVision(bundle).status();
  auto placeholder = static_cast<std::int32_t>(vision->placeholder());
  auto places = std::count(prompt.begin(), prompt.end(), placeholder);
  if (static_cast<std::size_t>(places) == command.images.size())
    return {};
  std::string name = "token " + std::to_string(placeholder);
  if (tokenizer)
    name = std::string(tokenizer->bytes(placeholder, /*special=*/true)) + " (" + name + ")";
  return {ErrorCode::InvalidArgument,
          "expected as many images as the prompt has placeholders, " + std::to_string(places) +
              ", found " + std::to_string(command.images.size()),
          "--image", "write " + name + " into the prompt once for each image, in their order"};
}

Result<std::vector<moert::SharedImage>> encodeImages(const RunCommand &command,
                                                     const moert::Model &model) {
  std::vector<moert::SharedImage> images;
  Progress progress("looking at images");
  for (const std::string &path : command.images) {
    MOERT_ASSIGN_OR_RETURN(moert::File file, moert::File::open(path));
    MOERT_ASSIGN_OR_RETURN(std::string content, file.readAll(moert::mostImageFileBytes));
    MOERT_ASSIGN_OR_RETURN(moert::SharedImage image,
                           moert::encodeImageFile(model, std::as_bytes(std::span(content)), path));
    images.push_back(std::move(image));
    progress.update(images.size(), command.images.size());
  }
  return images;
}

Result<GenerateResult> generateCompiled(const RunCommand &command,
                                        std::shared_ptr<const Bundle> bundle,
                                        std::span<const std::int32_t> prompt,
                                        GenerateOptions options) {
  MOERT_ASSIGN_OR_RETURN(
      auto model, loadModel(std::move(bundle), command.threads, command.variant, command.device));
  MOERT_ASSIGN_OR_RETURN(options.images, encodeImages(command, *model));
  moert::Timeline timeline;
  moert::SessionOptions sessionOptions;
  if (!command.profile.empty())
    sessionOptions.timeline = &timeline;
  MOERT_ASSIGN_OR_RETURN(moert::Session session, moert::Session::create(model, sessionOptions));
  MOERT_ASSIGN_OR_RETURN(GenerateResult result, moert::generate(session, prompt, options));
  if (!command.profile.empty())
    MOERT_RETURN_IF_ERROR(
        moert::writeFileAtomic(command.profile, timeline.toJson(model->device()->name())));
  return result;
}

} // namespace

static ExitCode generateText(const RunCommand &command) {
  MOEC_ASSIGN_OR_FAIL(std::shared_ptr<const Bundle> bundle,
                      openBundle(command.bundle, command.weights));
  MOEC_FAIL_IF_ERROR(requireLanguageModel(*bundle));
  MOEC_ASSIGN_OR_FAIL(std::optional<Tokenizer> tokenizer, loadTokenizer(*bundle));
  MOEC_ASSIGN_OR_FAIL(std::vector<std::int32_t> prompt, readPrompt(command, *bundle, tokenizer));

  MOEC_FAIL_IF_ERROR(checkImages(command, *bundle, prompt, tokenizer));

  Stream stream(tokenizer, command.special, command.json);
  Progress progress("reading the prompt");
  GenerateOptions options;
  options.maximumTokens = command.maximumTokens;
  options.sampling = {command.temperature, command.topK, command.topP, command.seed};
  options.ignoreEos = command.ignoreEos;
  options.chunk = command.chunk;
  options.promptLogits = !command.logits.empty();
  options.onPrompt = [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); };
  options.onToken = [&](std::int32_t id) {
    progress.finish();
    stream.add(id);
    return true;
  };
  MOEC_ASSIGN_OR_FAIL(GenerateResult result,
                      command.reference ? generateReference(*bundle, prompt, options)
                                        : generateCompiled(command, bundle, prompt, options));
  stream.finish();

  if (!command.logits.empty()) {
    std::int64_t shape[] = {
        static_cast<std::int64_t>(result.promptTokens),
        static_cast<std::int64_t>(bundle->manifest().language_model().vocabulary())};
    MOEC_FAIL_IF_ERROR(moert::writeNpy(command.logits, moert::ElementType::F32, shape,
                                       std::as_bytes(std::span(result.promptLogits))));
  }
  if (command.json)
    printJson({{"prompt_ids", prompt},
               {"generated_ids", result.ids},
               {"text", tokenizer ? tokenizer->decode(result.ids, command.special) : ""},
               {"stop_reason", reasonName(result.reason)},
               {"time_to_first_token_s", result.timeToFirstToken},
               {"time_per_token_s", result.timePerToken}});
  return ExitCode::Success;
}

ExitCode runRun(const RunCommand &command) {
  if (command.reference && !command.profile.empty())
    return failUsage("--profile shows the compiled code's launches; --reference runs none");
  if (command.reference && !command.images.empty())
    return failUsage("--reference computes text only; leave out --image");
  return command.outputs.empty() ? generateText(command) : runTensors(command);
}

} // namespace moec
