// moec bench: how fast a language model reads a prompt and writes tokens, and where the time goes.

#include "tools/moec/BenchTensors.h"
#include "tools/moec/Loading.h"
#include "tools/moec/Report.h"

#include "runtime/device/Device.h"
#include "runtime/device/cpu/ReadBandwidth.h"
#include "runtime/session/Generate.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <sys/resource.h>

namespace moec {

using moert::GenerateOptions;
using moert::GenerateResult;
using moert::ProfileEntry;
using moert::Result;
using moert::Session;

namespace {

// Pseudo-random and the same on every machine, so that experts are hit as unevenly as random text
// hits them.
std::vector<std::int32_t> makePrompt(std::uint64_t length, std::uint64_t vocabulary) {
  std::vector<std::int32_t> ids;
  std::uint64_t state = 1;
  for (std::uint64_t i = 0; i < length; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ids.push_back(static_cast<std::int32_t>((state >> 33) % vocabulary));
  }
  return ids;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// "model.layers.3.mlp" -> "model.layers.*.mlp": layers count together.
std::string withoutNumbers(const std::string &text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    bool startsPart = i == 0 || text[i - 1] == '.';
    std::size_t end = i;
    while (startsPart && end < text.size() && text[end] >= '0' && text[end] <= '9')
      ++end;
    if (end > i && (end == text.size() || text[end] == '.')) {
      result += '*';
      i = end;
    } else {
      result += text[i++];
    }
  }
  return result;
}

// Launches of the same ops of all layers together, the longest first.
std::vector<ProfileEntry> groupByOp(const std::vector<ProfileEntry> &profile) {
  std::map<std::string, ProfileEntry> groups;
  for (const ProfileEntry &entry : profile) {
    ProfileEntry &group =
        groups[withoutNumbers(entry.source.empty() ? entry.kernel : entry.source)];
    group.launches += entry.launches;
    group.seconds += entry.seconds;
    group.flops += entry.flops;
    group.bytesMoved += entry.bytesMoved;
  }
  std::vector<ProfileEntry> result;
  for (auto &[name, group] : groups) {
    group.source = name;
    result.push_back(group);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto &a, const auto &b) { return a.seconds > b.seconds; });
  return result;
}

struct Shares {
  std::vector<ProfileEntry> prompt, decode;
  std::uint64_t decodeSteps = 0;
};

// A run of its own with every launch timed.
Result<Shares> measureShares(Session &session, std::span<const std::int32_t> prompt,
                             std::uint64_t newTokens) {
  Shares result;
  MOERT_ASSIGN_OR_RETURN(moert::Sequence sequence, session.createSequence());
  session.setProfiling(true);
  moert::StepPart part{sequence, prompt, moert::LogitRows::Last};
  const moert::TokenChoice best;
  MOERT_RETURN_IF_ERROR(session.advance({&part, 1}));
  MOERT_ASSIGN_OR_RETURN(std::span<const std::int32_t> chosen, session.choose({&best, 1}));
  result.prompt = groupByOp(session.profile());
  session.setProfiling(true);
  result.decodeSteps = std::min<std::uint64_t>(newTokens, 32);
  for (std::uint64_t i = 0; i < result.decodeSteps; ++i) {
    std::int32_t token = chosen.front();
    moert::StepPart next{sequence, {&token, 1}, moert::LogitRows::Last};
    MOERT_RETURN_IF_ERROR(session.advance({&next, 1}));
    MOERT_ASSIGN_OR_RETURN(chosen, session.choose({&best, 1}));
  }
  result.decode = groupByOp(session.profile());
  session.setProfiling(false);
  MOERT_RETURN_IF_ERROR(session.release(sequence));
  return result;
}

double totalSeconds(const std::vector<ProfileEntry> &ops) {
  double total = 0;
  for (const ProfileEntry &op : ops)
    total += op.seconds;
  return total;
}

nlohmann::ordered_json opsToJson(const std::vector<ProfileEntry> &ops, std::uint64_t steps) {
  nlohmann::ordered_json result = nlohmann::ordered_json::array();
  double total = totalSeconds(ops), count = static_cast<double>(std::max<std::uint64_t>(steps, 1));
  for (const ProfileEntry &op : ops)
    result.push_back({{"op", op.source},
                      {"launches_per_step", static_cast<double>(op.launches) / count},
                      {"seconds_per_step", op.seconds / count},
                      {"share", total > 0 ? op.seconds / total : 0},
                      {"flops_per_s", op.seconds > 0 ? op.flops / op.seconds : 0},
                      {"bytes_per_s", op.seconds > 0 ? op.bytesMoved / op.seconds : 0}});
  return result;
}

void printOps(const char *title, const std::vector<ProfileEntry> &ops, std::uint64_t steps) {
  double total = totalSeconds(ops), count = static_cast<double>(std::max<std::uint64_t>(steps, 1));
  std::printf("\n%s: %s in launches\n", title, secondsToString(total / count).c_str());
  std::printf("  %6s  %9s  %8s  %9s  %8s  %s\n", "share", "time", "launches", "GFLOP/s", "GB/s",
              "op");
  for (const ProfileEntry &op : ops) {
    auto rate = [&](double amount) {
      return amount > 0 && op.seconds > 0 ? numberToString(amount / op.seconds / 1e9, 1)
                                          : std::string("-");
    };
    std::printf("  %5.1f%%  %9s  %8s  %9s  %8s  %s\n", total > 0 ? op.seconds / total * 100 : 0,
                secondsToString(op.seconds / count).c_str(),
                numberToString(static_cast<double>(op.launches) / count, 0).c_str(),
                rate(op.flops).c_str(), rate(op.bytesMoved).c_str(), op.source.c_str());
  }
}

// What reading memory alone takes on as many threads, to set beside decoding; 0: not measured.
double readBandwidth(const moert::Model &model) {
  if (!model.device()->isHostAccessible())
    return 0;
  Result<std::unique_ptr<moert::ThreadPool>> pool = moert::ThreadPool::create(model.threads());
  return pool.isOk() ? moert::measureReadBandwidth(**pool) : 0;
}

double bytesPerStep(const std::vector<ProfileEntry> &ops, std::uint64_t steps) {
  double bytes = 0;
  for (const ProfileEntry &op : ops)
    bytes += op.bytesMoved;
  return bytes / static_cast<double>(std::max<std::uint64_t>(steps, 1));
}

std::uint64_t peakMemory() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

} // namespace

ExitCode runBench(const BenchCommand &command) {
  MOEC_ASSIGN_OR_FAIL(auto bundle, openBundle(command.bundle, command.weights));
  MOEC_ASSIGN_OR_FAIL(auto model,
                      loadModel(bundle, command.threads, command.variant, command.device));
  if (!model->isLanguageModel())
    return benchTensors(*model, command);
  MOEC_ASSIGN_OR_FAIL(Session session, Session::create(model));
  std::vector<std::int32_t> prompt = makePrompt(command.promptTokens, session.vocabulary());
  if (const moec::bundle::Vision *vision = moert::findVision(session.model().bundle())) {
    // A prompt of text has no places for images.
    auto placeholder = static_cast<std::int32_t>(vision->placeholder());
    std::replace(prompt.begin(), prompt.end(), placeholder, placeholder == 0 ? 1 : 0);
  }

  GenerateOptions options;
  options.maximumTokens = command.newTokens;
  options.ignoreEos = true;
  std::vector<double> firsts, nexts;
  Progress progress("measuring");
  for (std::uint64_t run = 0; run <= command.repetitions; ++run) {
    std::uint64_t done = 0;
    options.onToken = [&](std::int32_t) {
      progress.update(run * command.newTokens + ++done,
                      (command.repetitions + 1) * command.newTokens);
      return true;
    };
    MOEC_ASSIGN_OR_FAIL(GenerateResult result, moert::generate(session, prompt, options));
    if (run == 0)
      continue; // warms caches and makes the pools grow
    firsts.push_back(result.timeToFirstToken);
    nexts.push_back(result.timePerToken);
  }
  progress.finish();
  double first = median(firsts), next = median(nexts);
  // Before profiling, which takes memory itself.
  std::uint64_t memory = peakMemory();
  MOEC_ASSIGN_OR_FAIL(Shares shares, measureShares(session, prompt, command.newTokens));
  double promptRate = static_cast<double>(command.promptTokens) / first;
  double newRate = next > 0 ? 1 / next : 0;
  double reading = readBandwidth(*model);
  double tokenBytes = bytesPerStep(shares.decode, shares.decodeSteps);
  double readingTime = reading > 0 ? tokenBytes / reading : 0;

  if (command.json) {
    printJson({{"target", model->variant()},
               {"device", model->device()->name()},
               {"threads", model->threads()},
               {"prompt_tokens", command.promptTokens},
               {"new_tokens", command.newTokens},
               {"repetitions", command.repetitions},
               {"time_to_first_token_s", first},
               {"time_per_token_s", next},
               {"prompt_tokens_per_s", promptRate},
               {"new_tokens_per_s", newRate},
               {"peak_memory_bytes", memory},
               {"weight_bytes", model->memory().weights},
               {"packed_weight_bytes", model->memory().globals},
               {"state_bytes", session.stateBytes()},
               {"temporary_bytes", session.arenaBytes()},
               {"launches_per_step", session.launchCount()},
               {"bytes_per_token", tokenBytes},
               {"read_bandwidth_bytes_per_s", reading},
               {"prompt_ops", opsToJson(shares.prompt, 1)},
               {"decode_ops", opsToJson(shares.decode, shares.decodeSteps)}});
    return ExitCode::Success;
  }
  std::printf(
      "target %s on %s, %u threads, prompt of %llu tokens, %llu new tokens, median of %llu runs\n",
      model->variant().c_str(), model->device()->name().c_str(), model->threads(),
      static_cast<unsigned long long>(command.promptTokens),
      static_cast<unsigned long long>(command.newTokens),
      static_cast<unsigned long long>(command.repetitions));
  std::printf("  time to first token  %10s   %s tokens/s\n", secondsToString(first).c_str(),
              numberToString(promptRate, 1).c_str());
  std::printf("  time per token       %10s   %s tokens/s\n", secondsToString(next).c_str(),
              numberToString(newRate, 1).c_str());
  if (readingTime > 0)
    std::printf(
        "  one token moves      %10s   %s when only read, at %s GB/s: the token takes %s x\n",
        bytesToString(tokenBytes).c_str(), secondsToString(readingTime).c_str(),
        numberToString(reading / 1e9, 1).c_str(), numberToString(next / readingTime, 2).c_str());
  std::printf("  peak memory          %10s   weights as in files %s, packed %s, caches %s, "
              "temporaries %s\n",
              bytesToString(static_cast<double>(memory)).c_str(),
              bytesToString(static_cast<double>(model->memory().weights)).c_str(),
              bytesToString(static_cast<double>(model->memory().globals)).c_str(),
              bytesToString(static_cast<double>(session.stateBytes())).c_str(),
              bytesToString(static_cast<double>(session.arenaBytes())).c_str());
  std::printf("  launches in a step   %10zu\n", session.launchCount());
  printOps("prompt", shares.prompt, 1);
  printOps("one new token", shares.decode, shares.decodeSteps);
  return ExitCode::Success;
}

} // namespace moec
