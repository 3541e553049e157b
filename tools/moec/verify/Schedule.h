// What moec verify runs: sequences of tokens, and the steps that feed them to the model.
#ifndef MOEC_TOOLS_MOEC_VERIFY_SCHEDULE_H
#define MOEC_TOOLS_MOEC_VERIFY_SCHEDULE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace moec::verify {

enum class Level { Smoke, Samples, Full };

struct Part {
  std::size_t sequence = 0;
  std::size_t begin = 0, count = 0; // tokens of the sequence
};

// Different sequences in every step; each sequence's tokens come in their order.
using Step = std::vector<Part>;

struct Schedule {
  std::vector<std::vector<std::int32_t>> sequences;
  std::vector<Step> steps;
  std::size_t tokens() const;
};

// Random tokens: one sequence (smoke), 32 of random lengths (samples, full), none longer than
// `longest`.
std::vector<std::vector<std::int32_t>> makeSequences(Level level, std::uint64_t vocabulary,
                                                     std::size_t longest, std::uint64_t seed);

// smoke: the first sequence in one step. samples: all of them, in pieces of 1 to 24 tokens, up to
// eight a step. full: the same up to the last tokens, which then come one by one in batches of 1,
// 2, 3, 5, 8 ... sequences.
Schedule makeSchedule(Level level, std::vector<std::vector<std::int32_t>> sequences,
                      std::uint64_t seed);

} // namespace moec::verify

#endif
