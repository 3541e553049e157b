// Changes a JSON document as damaged and hostile files do: values, types, numbers at the ends of
// their ranges, names, members that are missing or twice as many.
#ifndef MOEC_TEST_UNIT_IMPORTCHECKPOINT_FUZZ_JSONMUTATOR_H
#define MOEC_TEST_UNIT_IMPORTCHECKPOINT_FUZZ_JSONMUTATOR_H

#include <nlohmann/json.hpp>

#include <random>

class JsonMutator {
public:
  explicit JsonMutator(unsigned seed) : random(seed) {}

  unsigned below(std::size_t count) { return unsigned(random() % count); }
  /// One change somewhere in `document`; what it takes from elsewhere is of `other`.
  void change(nlohmann::json &document, const nlohmann::json &other);

private:
  using Place = std::pair<nlohmann::json *, nlohmann::json *>; // a value and what it is part of

  nlohmann::json makeValue();
  void changeNumber(nlohmann::json &value);
  void changeString(nlohmann::json &value);
  void rename(nlohmann::json &object);

  std::minstd_rand random;
};

/// Lays a safetensors header's tensors one behind the other, as long as their shapes and types ask.
/// Tensors that are damaged too much for that stay as they are.
void repairOffsets(nlohmann::json &header);

#endif
