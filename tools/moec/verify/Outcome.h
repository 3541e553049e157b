// What moec verify found, as a table and as JSON.
#ifndef MOEC_TOOLS_MOEC_VERIFY_OUTCOME_H
#define MOEC_TOOLS_MOEC_VERIFY_OUTCOME_H

#include "tools/moec/verify/Comparison.h"

#include <optional>

namespace moec::verify {

struct SegmentOutcome {
  std::string name;
  std::optional<std::int64_t> layer;
  std::vector<Comparison>
      withInterpreter;              // what it gives to others, its routers' inputs and choices
  std::vector<Comparison> withFile; // interpreted by nobody: somebody else's numbers, if there are
  std::vector<Comparison> interpreterWithFile;
  std::optional<Comparison> firstOp; // of those that differ from the interpreter
  std::string note;                  // on what the difference means

  bool agrees() const;
};

struct Outcome {
  std::string bundle, model, variant, reference, level;
  std::string second = "interpreter"; // what layers are compared with where it is not a file
  std::uint64_t seed = 0;
  std::size_t sequences = 0, tokens = 0, steps = 0;
  Tolerances tolerances;
  std::vector<SegmentOutcome> segments;
  Comparison logits;
  std::string logitsNote;

  bool agrees() const;
  const SegmentOutcome *firstDifferent() const; // null: none
  nlohmann::ordered_json toJson() const;
  std::string toTable() const;
};

} // namespace moec::verify

#endif
