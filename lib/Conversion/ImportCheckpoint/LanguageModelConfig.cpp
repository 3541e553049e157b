#include "LanguageModelConfig.h"

#include "runtime/session/TokenizerSteps.h"

namespace mlir::moec {

using moert::JsonView;

// Token ids are i32 in a step.
static constexpr int64_t mostTokens = INT32_MAX;

/// Transformers' fast tokenizers put in front of a text what tokenizer.json's template says; the
/// field add_bos_token, where there is one, decides instead.
static void readTemplate(Checkpoint &checkpoint, LanguageModelConfig &result) {
  JsonView processor = checkpoint.json("tokenizer.json").optional("post_processor");
  std::vector<int64_t> beginning = moert::readTemplateBeginning(processor);
  if (beginning.empty())
    return;
  if (beginning.size() > 1 || beginning.front() >= result.vocabulary) {
    processor.complain("its template puts " + std::to_string(beginning.size()) +
                       " tokens in front of a text, the first of them " +
                       std::to_string(beginning.front()) + "; one below vocab_size is supported");
    return;
  }
  result.addBos = true;
  result.bosToken = beginning.front();
}

LanguageModelConfig readLanguageModelConfig(Checkpoint &checkpoint) {
  LanguageModelConfig result;
  JsonView config = checkpoint.config();
  JsonView generation = checkpoint.json("generation_config.json");
  JsonView tokenizer = checkpoint.json("tokenizer_config.json");

  // A model of more than text has what belongs to the text in a config of its own.
  JsonView text = config.optional("text_config");
  if (!text)
    text = config;
  auto vocabulary = text["vocab_size"].integer(1, mostTokens);
  result.vocabulary = vocabulary.value_or(mostTokens); // then nothing is beyond it
  JsonView longest = text.optional("max_position_embeddings");
  if (!longest)
    longest = text.optional("model_max_length");
  result.maximumTokens = longest.integer(1, mostTokens).value_or(0);

  auto first = [&](const char *key) {
    JsonView view = generation.optional(key);
    if (!view)
      view = config.optional(key);
    return view ? view : text.optional(key);
  };
  result.bosToken = first("bos_token_id").integer(0, result.vocabulary - 1).value_or(-1);
  JsonView eos = first("eos_token_id");
  std::vector<JsonView> ends;
  if (eos && eos.raw()->is_array())
    ends = eos.elements();
  else if (eos)
    ends.push_back(eos);
  for (const JsonView &end : ends)
    if (auto id = end.integer(0, result.vocabulary - 1))
      result.eosTokens.push_back(*id);

  JsonView addBos = tokenizer.optional("add_bos_token");
  result.addBos = addBos.boolean().value_or(false);
  if (result.addBos && result.bosToken < 0) {
    addBos.complain("prompts start with a begin-of-text token, but neither config.json nor "
                    "generation_config.json has bos_token_id");
    result.addBos = false;
  }
  if (checkpoint.contains("tokenizer.json"))
    result.tokenizer = "tokenizer.json";
  else if (checkpoint.contains("tiktoken.model"))
    result.tokenizer = "tiktoken.model";
  if (!addBos && result.tokenizer == "tokenizer.json")
    readTemplate(checkpoint, result);
  return result;
}

} // namespace mlir::moec
