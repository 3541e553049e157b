// Prompts to tokens, and perplexity: loops over Session::step.
#ifndef MOERT_SESSION_GENERATE_H
#define MOERT_SESSION_GENERATE_H

#include "runtime/session/Sampler.h"
#include "runtime/session/Session.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace moert {

struct GenerateOptions {
  std::uint64_t maximumTokens = 128;
  SamplingOptions sampling;
  bool ignoreEos = false;
  std::uint64_t chunk = 0; // feed the prompt in pieces of so many tokens; 0: all at once
  bool promptLogits = false;
  // Take the places of the prompt's placeholders, in order.
  std::vector<SharedImage> images = {};
  // Called with each new token (not with end-of-text); false stops.
  std::function<bool(std::int32_t)> onToken;
  // Prompt tokens fed so far, when the prompt goes in chunks.
  std::function<void(std::uint64_t done, std::uint64_t total)> onPrompt;
};

enum class StopReason { MaximumTokens, EndOfText, Context, Caller };

struct GenerateResult {
  std::vector<std::int32_t> ids; // without the end-of-text token that stopped it
  StopReason reason = StopReason::MaximumTokens;
  double timeToFirstToken = 0;     // seconds: the prompt and the first sample
  double timePerToken = 0;         // seconds a token after the first; 0 when there is none
  std::uint64_t promptTokens = 0;  // with those of images
  std::vector<float> promptLogits; // [promptTokens, vocabulary] when asked for
};

// Starts a sequence of its own and releases it in the end. The prompt must have at least one token.
Result<GenerateResult> generate(Session &session, std::span<const std::int32_t> prompt,
                                const GenerateOptions &options);

struct Perplexity {
  double value = 0;
  std::uint64_t windows = 0;
  std::uint64_t tokens = 0; // predictions counted
};

// Cuts `ids` into whole windows, runs each from an empty state and averages the loss of tokens 1 to
// window - 1.
Result<Perplexity>
perplexity(Session &session, std::span<const std::int32_t> ids, std::uint64_t window,
           const std::function<void(std::uint64_t, std::uint64_t)> &progress = {});

} // namespace moert

#endif
