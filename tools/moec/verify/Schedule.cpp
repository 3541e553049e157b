#include "tools/moec/verify/Schedule.h"

#include <algorithm>
#include <random>

namespace moec::verify {

// The standard library's distributions differ between implementations; what a seed gives should
// not.
static std::size_t pick(std::mt19937_64 &random, std::size_t least, std::size_t most) {
  return least + static_cast<std::size_t>(random() % (most - least + 1));
}

std::size_t Schedule::tokens() const {
  std::size_t sum = 0;
  for (const Step &step : steps)
    for (const Part &part : step)
      sum += part.count;
  return sum;
}

std::vector<std::vector<std::int32_t>> makeSequences(Level level, std::uint64_t vocabulary,
                                                     std::size_t longest, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::size_t count = level == Level::Smoke ? 1 : 32;
  std::vector<std::vector<std::int32_t>> sequences(count);
  for (std::size_t i = 0; i < count; ++i) {
    // The first one is as long as allowed, the second one token.
    std::size_t length = i == 0 ? longest : i == 1 ? 1 : pick(random, 1, longest);
    for (std::size_t t = 0; t < length; ++t)
      sequences[i].push_back(static_cast<std::int32_t>(pick(random, 0, vocabulary - 1)));
  }
  return sequences;
}

Schedule makeSchedule(Level level, std::vector<std::vector<std::int32_t>> sequences,
                      std::uint64_t seed) {
  Schedule schedule;
  if (level == Level::Smoke) {
    sequences.resize(1);
    schedule.steps.push_back({{0, 0, sequences[0].size()}});
    schedule.sequences = std::move(sequences);
    return schedule;
  }
  std::mt19937_64 random(seed ^ 0x5eed);
  constexpr std::size_t decoded = 6, longestPiece = 24, mostParts = 8;
  std::vector<std::size_t> done(sequences.size(), 0);
  auto run = [&](std::size_t leftOver, auto longest, auto parts) {
    while (true) {
      std::vector<std::size_t> open;
      for (std::size_t i = 0; i < sequences.size(); ++i)
        if (done[i] + leftOver < sequences[i].size())
          open.push_back(i);
      if (open.empty())
        return;
      Step step;
      for (std::size_t wanted = parts(); wanted > 0 && !open.empty(); --wanted) {
        std::size_t which = pick(random, 0, open.size() - 1), sequence = open[which];
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
        std::size_t rest = sequences[sequence].size() - leftOver - done[sequence];
        std::size_t count = pick(random, 1, std::min<std::size_t>(rest, longest));
        step.push_back({sequence, done[sequence], count});
        done[sequence] += count;
      }
      schedule.steps.push_back(std::move(step));
    }
  };
  run(level == Level::Full ? decoded : 0, longestPiece, [&] { return pick(random, 1, mostParts); });
  std::size_t small = 1, large = 2; // batches of 1, 2, 3, 5, 8 ... and again
  run(0, std::size_t(1), [&] {
    std::size_t size = small;
    small = large;
    large += size;
    if (size > sequences.size())
      small = 1, large = 2;
    return size;
  });
  schedule.sequences = std::move(sequences);
  return schedule;
}

} // namespace moec::verify
