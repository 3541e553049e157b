// Choosing tokens from the logits of a step, where they are.
#include "runtime/session/SessionState.h"

namespace moert {

void SessionState::prepareSampler(const SessionOptions &options) {
  if (language.sampler().empty())
    return;
  // Validation saw the entry, its inputs and its output in every variant.
  const CompiledProgram &program = *model->loaded().entry(language.sampler());
  auto input = [&](std::string_view name) {
    return static_cast<std::size_t>(program.inputIndex(name));
  };
  samplerLogits = input("logits");
  samplerRows = input("rows");
  temperatureInput = input("temperature");
  topKInput = input("top_k");
  topPInput = input("top_p");
  randomInput = input("random");
  tokensOutput = static_cast<std::size_t>(program.outputIndex("tokens"));
  samplerShapes.resize(static_cast<std::size_t>(program.source().inputs_size()));
  sampler.emplace(model->loaded().runner(program));
  sampler->setProfiling(options.profile, options.timeline);
}

Result<std::span<const std::int32_t>> SessionState::choose(std::span<const TokenChoice> choices) {
  if (!sampler)
    return Status(ErrorCode::Unsupported, "the bundle has no program that chooses tokens",
                  model->bundle().path(), "compile the model again");
  for (std::size_t i = 0; i < choices.size(); ++i) {
    auto complain = [&](std::string message) {
      return Status(ErrorCode::InvalidArgument, std::move(message), "choice " + std::to_string(i));
    };
    if (choices[i].row >= logitRowsThere)
      return complain("row " + std::to_string(choices[i].row) + "; the last step has " +
                      std::to_string(logitRowsThere) + " rows of logits");
    if (!(choices[i].random >= 0 && choices[i].random < 1))
      return complain("a random number is at least 0 and less than 1");
  }
  auto rows = static_cast<std::int64_t>(logitRowsThere);
  auto count = static_cast<std::int64_t>(choices.size());
  for (ProgramRunner::Shape &shape : samplerShapes)
    shape.assign({count});
  samplerShapes[samplerLogits].assign({rows, static_cast<std::int64_t>(language.vocabulary())});
  sampler->borrowInput(samplerLogits,
                       runner.outputOnDevice(static_cast<std::size_t>(logitsOutput)));
  MOERT_RETURN_IF_ERROR(sampler->prepare(samplerShapes, {}));
  auto fill = [&]<typename T>(std::size_t input, T(value)(const TokenChoice &)) {
    T *to = reinterpret_cast<T *>(sampler->input(input).data());
    for (const TokenChoice &choice : choices)
      *to++ = value(choice);
  };
  using Choice = const TokenChoice &;
  fill(
      samplerRows, +[](Choice choice) { return static_cast<std::int32_t>(choice.row); });
  fill(
      temperatureInput, +[](Choice choice) { return choice.temperature; });
  fill(
      topKInput, +[](Choice choice) { return choice.topK; });
  fill(
      topPInput, +[](Choice choice) { return choice.topP; });
  fill(
      randomInput, +[](Choice choice) { return choice.random; });
  MOERT_RETURN_IF_ERROR(sampler->run());
  std::span<std::byte> output = sampler->output(tokensOutput);
  return std::span(reinterpret_cast<const std::int32_t *>(output.data()), choices.size());
}

} // namespace moert
