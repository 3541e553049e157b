// A language model at work: sequences of tokens whose state (KV cache) lives here, advanced in
// ragged steps.
#ifndef MOERT_SESSION_SESSION_H
#define MOERT_SESSION_SESSION_H

#include "runtime/session/ImageEncoder.h"
#include "runtime/session/Model.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace moert {

struct SessionOptions {
  // Longest sequence, at most the model's own limit. 0: the model's limit.
  std::uint64_t maximumTokens = 0;
  // Most bytes that all states (KV caches) of the session may take. 0: no limit. Pools grow as
  // needed.
  std::uint64_t maximumStateBytes = 0;
  bool profile = false; // time every launch; costs two clock reads each
  // Receives every launch; implies `profile`. Outlives the session.
  Timeline *timeline = nullptr;
};

// Names one sequence of one session. Never reused: a released one is an error, not somebody else's
// sequence.
struct Sequence {
  std::uint64_t id = 0;
};

enum class LogitRows {
  None, // only fill the cache
  Last, // one row: the last token's
  All,  // one row a token
};

// One sequence's share of a step.
struct StepPart {
  Sequence sequence;
  std::span<const std::int32_t> tokens; // appended to the sequence; at least one
  LogitRows logits = LogitRows::Last;
};

// Rows follow the parts, and within a part its tokens. Belongs to the session and lives until its
// next call.
struct Logits {
  const float *data = nullptr;
  std::size_t rows = 0;
  std::size_t vocabulary = 0;
  std::span<const float> row(std::size_t index) const {
    return {data + index * vocabulary, vocabulary};
  }
};

// How one token is chosen from a row of the last step's logits. NaN counts as -inf.
struct TokenChoice {
  std::size_t row = 0;
  float temperature = 0; // 0: the largest logit; of equal ones that of the lowest token
  std::int32_t topK = 0; // only among the k largest logits; 0: all
  double topP = 1;       // only the fewest likely tokens whose probabilities reach this sum
  double random = 0;     // in [0, 1)
};

class SessionState;

// A copy of a sequence's state at one point. Cheap: blocks are shared until somebody writes to
// them. May outlive the sequence, not the session's use: it keeps the session's memory alive.
class Snapshot {
public:
  Snapshot(Snapshot &&) noexcept;
  Snapshot &operator=(Snapshot &&) noexcept;
  ~Snapshot();
  std::uint64_t length() const;

private:
  friend class Session;
  struct Content;
  explicit Snapshot(std::unique_ptr<Content> content);
  std::unique_ptr<Content> content;
};

// One thread at a time. A call that fails leaves every sequence as it was.
class Session {
public:
  static Result<Session> create(std::shared_ptr<const Model> model,
                                const SessionOptions &options = {});
  Session(Session &&) noexcept;
  Session &operator=(Session &&) noexcept;
  ~Session();

  const Model &model() const;
  std::size_t vocabulary() const;
  std::uint64_t maximumTokens() const; // 0: unbounded

  Result<Sequence> createSequence();
  Status release(Sequence sequence);
  Result<std::uint64_t> length(Sequence sequence) const; // tokens so far

  // From `position` on the sequence's tokens are an image's: as many as it has, each the model's
  // placeholder. To be said before they are appended; they may come in any number of steps. Images
  // follow each other. truncate() keeps those that begin before the new end.
  Status placeImage(Sequence sequence, std::uint64_t position, SharedImage image);

  // Appends tokens to one or several different sequences: prefill, decode and any mix. Token ids
  // must lie in [0, vocabulary), lengths within the limit.
  Result<Logits> step(std::span<const StepPart> parts);
  // The same, but the logits stay on the device: for choose(), or for logits(), any number of times
  // until the next step. Returns perhaps before the device has begun; a fault of the device shows
  // in one of the next calls then.
  Status advance(std::span<const StepPart> parts);
  Result<Logits> logits();
  std::size_t logitRows() const; // of the last step
  // Chooses a token for each of `choices`, on the device: nothing but the tokens comes to the host.
  // They live until the session's next call.
  Result<std::span<const std::int32_t>> choose(std::span<const TokenChoice> choices);

  // Forgets everything after the first `length` tokens. Recurrent states cannot go back: then only
  // 0 or the present length is possible; take snapshots instead.
  Status truncate(Sequence sequence, std::uint64_t length);
  // A new sequence with the same past.
  Result<Sequence> fork(Sequence sequence);
  Result<Snapshot> snapshot(Sequence sequence);
  // Puts `sequence` back to what it, or another sequence of this session, was.
  Status restore(Sequence sequence, const Snapshot &snapshot);

  void setProfiling(bool on); // clears what was measured
  std::vector<ProfileEntry> profile() const;
  std::uint64_t stateBytes() const; // taken by state pools now
  std::uint64_t arenaBytes() const; // taken by temporaries now
  // Launches of the last step and of choosing tokens after it.
  std::size_t launchCount() const;

private:
  explicit Session(std::unique_ptr<SessionState> state);
  std::unique_ptr<SessionState> state;
};

} // namespace moert

#endif
