// The entry that encodes images, and how it fits the language model's.
#include "runtime/bundle/ValidateProgram.h"

#include "runtime/bundle/Bundle.h"

#include <algorithm>
#include <optional>

namespace moert {

using namespace moec::bundle;

namespace {

class VisionValidator {
public:
  VisionValidator(const Program &encoder, const Vision &vision, const std::string &where,
                  Problems &problems)
      : encoder(encoder), vision(vision), where(where), problems(problems) {}

  void validate(const Program &step) {
    std::int64_t merged = std::int64_t(vision.merge()) * vision.merge();
    std::int64_t numbers = std::int64_t(3) * vision.patch() * vision.patch();
    input("patches", F32, {std::nullopt, merged, std::nullopt, numbers});
    for (const char *name :
         {"rows", "heights", "columns", "widths", "times", "keys", "last_keys", "items"})
      input(name, I32, {std::nullopt, merged, std::nullopt});
    input("block_table", I32, {1, std::nullopt});
    if (encoder.inputs_size() != 10 || encoder.outputs_size() != 1 || encoder.states_size() != 1)
      complain("an entry that encodes images has 10 inputs, 1 output and 1 state");
    if (encoder.states_size() == 1 &&
        (encoder.states(0).kind() != State::PAGED || encoder.states(0).block_tokens() < 1))
      complain("its state is no cache");
    const Tensor *wanted = nullptr;
    for (const Tensor &tensor : step.inputs())
      if (tensor.name() == vision.image_embeddings())
        wanted = &tensor;
    if (encoder.outputs_size() != 1 || !wanted || wanted->shape_size() != 2)
      return; // was said
    const Tensor &given = encoder.outputs(0);
    if (!constant(wanted->shape(1)) || given.shape_size() != 2 || given.type() != wanted->type() ||
        constant(given.shape(1)) != constant(wanted->shape(1)))
      complain("its output is not what the input " + inQuotes(vision.image_embeddings()) +
               " of the entry " + inQuotes(step.name()) + " takes");
  }

private:
  void complain(const std::string &message) { problems.add(where + ": " + message); }

  static std::optional<std::int64_t> constant(const Expression &size) {
    if (size.steps_size() != 1 || size.steps(0).operator_() != Expression::CONSTANT)
      return std::nullopt;
    return size.steps(0).value();
  }

  // `shape` has a number for each dimension that must be constant.
  void input(const char *name, moec::bundle::ElementType type,
             std::initializer_list<std::optional<std::int64_t>> shape) {
    auto found = std::find_if(encoder.inputs().begin(), encoder.inputs().end(),
                              [&](const Tensor &tensor) { return tensor.name() == name; });
    if (found == encoder.inputs().end())
      return complain(std::string("the input ") + inQuotes(name) + " is missing");
    bool fits = found->type() == type && found->shape_size() == static_cast<int>(shape.size());
    for (int i = 0; fits && i < found->shape_size(); ++i)
      fits = constant(found->shape(i)) == shape.begin()[i];
    if (!fits)
      complain(std::string("the input ") + inQuotes(name) + " has another type or shape");
  }

  const Program &encoder;
  const Vision &vision;
  const std::string &where;
  Problems &problems;
};

} // namespace

void validateVisionEntry(const Program &encoder, const Program &step, const Vision &vision,
                         const std::string &where, Problems &problems) {
  VisionValidator(encoder, vision, where, problems).validate(step);
}

} // namespace moert
