#include "runtime/session/Generate.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace moert {

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Releases a sequence whatever way its user leaves.
class OwnedSequence {
public:
  OwnedSequence(Session &session, Sequence sequence) : session(session), sequence(sequence) {}
  ~OwnedSequence() { (void)session.release(sequence); }
  OwnedSequence(const OwnedSequence &) = delete;

private:
  Session &session;
  Sequence sequence;
};

} // namespace

Result<GenerateResult> generate(Session &session, std::span<const std::int32_t> text,
                                const GenerateOptions &options) {
  if (text.empty())
    return Status(ErrorCode::InvalidArgument, "the prompt has no tokens", {},
                  "give at least one token, such as begin-of-text");
  MOERT_ASSIGN_OR_RETURN(Sampler sampler, Sampler::create(options.sampling));
  MOERT_ASSIGN_OR_RETURN(Sequence sequence, session.createSequence());
  OwnedSequence owner(session, sequence);
  const moec::bundle::LanguageModel &language =
      session.model().bundle().manifest().language_model();

  PromptWithImages withImages;
  std::span<const std::int32_t> prompt = text;
  if (!options.images.empty() || language.has_vision()) {
    MOERT_RETURN_IF_ERROR(requireVision(session.model().bundle()).status());
    MOERT_ASSIGN_OR_RETURN(withImages, placeImages(text, options.images, language.vision()));
    prompt = withImages.tokens;
    for (std::size_t i = 0; i < options.images.size(); ++i)
      MOERT_RETURN_IF_ERROR(
          session.placeImage(sequence, withImages.positions[i], options.images[i]));
  }

  GenerateResult result;
  result.promptTokens = prompt.size();
  auto start = Clock::now();
  std::size_t chunk = options.chunk == 0 ? prompt.size() : options.chunk;
  for (std::size_t at = 0; at < prompt.size(); at += chunk) {
    std::span<const std::int32_t> piece = prompt.subspan(at, std::min(chunk, prompt.size() - at));
    bool last = at + piece.size() == prompt.size();
    StepPart part{sequence, piece,
                  options.promptLogits ? LogitRows::All
                  : last               ? LogitRows::Last
                                       : LogitRows::None};
    MOERT_RETURN_IF_ERROR(session.advance({&part, 1}));
    if (options.promptLogits) {
      MOERT_ASSIGN_OR_RETURN(Logits logits, session.logits());
      result.promptLogits.insert(result.promptLogits.end(), logits.data,
                                 logits.data + logits.rows * logits.vocabulary);
    }
    if (options.onPrompt)
      options.onPrompt(at + piece.size(), prompt.size());
  }
  if (options.maximumTokens == 0) {
    MOERT_RETURN_IF_ERROR(session.logits().status()); // waits
    result.timeToFirstToken = secondsSince(start);
    return result;
  }

  std::uint64_t length = prompt.size();
  Clock::time_point first;
  while (true) {
    TokenChoice choice = sampler.next(session.logitRows() - 1);
    MOERT_ASSIGN_OR_RETURN(std::span<const std::int32_t> chosen, session.choose({&choice, 1}));
    std::int32_t token = chosen.front();
    if (result.ids.empty()) {
      result.timeToFirstToken = secondsSince(start);
      first = Clock::now();
    }
    const auto &ends = language.eos_tokens();
    if (!options.ignoreEos &&
        std::find(ends.begin(), ends.end(), static_cast<std::uint32_t>(token)) != ends.end()) {
      result.reason = StopReason::EndOfText;
      break;
    }
    result.ids.push_back(token);
    if (options.onToken && !options.onToken(token)) {
      result.reason = StopReason::Caller;
      break;
    }
    if (result.ids.size() == options.maximumTokens)
      break;
    if (length == (session.maximumTokens() == 0 ? INT32_MAX : session.maximumTokens())) {
      result.reason = StopReason::Context;
      break;
    }
    StepPart part{sequence, {&token, 1}, LogitRows::Last};
    MOERT_RETURN_IF_ERROR(session.advance({&part, 1}));
    ++length;
  }
  if (result.ids.size() > 1)
    result.timePerToken = secondsSince(first) / static_cast<double>(result.ids.size() - 1);
  return result;
}

Result<Perplexity> perplexity(Session &session, std::span<const std::int32_t> ids,
                              std::uint64_t window,
                              const std::function<void(std::uint64_t, std::uint64_t)> &progress) {
  if (window < 2)
    return Status(ErrorCode::InvalidArgument, "a window has at least 2 tokens");
  std::uint64_t windows = ids.size() / window;
  if (windows == 0)
    return Status(ErrorCode::InvalidArgument, std::to_string(ids.size()) +
                                                  " tokens do not fill one window of " +
                                                  std::to_string(window));
  Perplexity result;
  double loss = 0;
  for (std::uint64_t w = 0; w < windows; ++w) {
    std::span<const std::int32_t> tokens = ids.subspan(w * window, window);
    MOERT_ASSIGN_OR_RETURN(Sequence sequence, session.createSequence());
    OwnedSequence owner(session, sequence);
    StepPart part{sequence, tokens, LogitRows::All};
    MOERT_ASSIGN_OR_RETURN(Logits logits, session.step({&part, 1}));
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      std::span<const float> row = logits.row(i);
      double highest = *std::max_element(row.begin(), row.end()), sum = 0;
      for (float value : row)
        sum += std::exp(static_cast<double>(value) - highest);
      loss += highest + std::log(sum) -
              static_cast<double>(row[static_cast<std::size_t>(tokens[i + 1])]);
      ++result.tokens;
    }
    ++result.windows;
    if (progress)
      progress(w + 1, windows);
  }
  result.value = std::exp(loss / static_cast<double>(result.tokens));
  return result;
}

} // namespace moert
