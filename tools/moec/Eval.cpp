// moec eval: perplexity.

#include "tools/moec/Loading.h"
#include "tools/moec/Report.h"

#include "runtime/session/Generate.h"

namespace moec {

ExitCode runEval(const EvalCommand &command) {
  MOEC_ASSIGN_OR_FAIL(auto bundle, openBundle(command.bundle, command.weights));
  MOEC_FAIL_IF_ERROR(requireLanguageModel(*bundle));
  MOEC_ASSIGN_OR_FAIL(auto ids,
                      readIds(command.ids, bundle->manifest().language_model().vocabulary()));
  MOEC_ASSIGN_OR_FAIL(auto model,
                      loadModel(bundle, command.threads, command.variant, command.device));
  MOEC_ASSIGN_OR_FAIL(moert::Session session, moert::Session::create(model));
  Progress progress("reading the text");
  MOEC_ASSIGN_OR_FAIL(
      moert::Perplexity result,
      moert::perplexity(session, ids, command.window, [&](std::uint64_t done, std::uint64_t total) {
        progress.update(done, total);
      }));
  progress.finish();
  std::uint64_t unused = ids.size() - result.windows * command.window;
  if (command.json)
    printJson({{"perplexity", result.value},
               {"window", command.window},
               {"windows", result.windows},
               {"tokens", result.tokens},
               {"unused_tokens", unused}});
  else
    printNow("perplexity " + numberToString(result.value, 4) + " (" +
             std::to_string(result.windows) + " windows of " + std::to_string(command.window) +
             " tokens, " + std::to_string(unused) + " tokens left out)\n");
  return ExitCode::Success;
}

} // namespace moec
