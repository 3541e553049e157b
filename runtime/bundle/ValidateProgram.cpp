#include "runtime/bundle/ValidateProgram.h"

#include "runtime/base/CheckedMath.h"
#include "runtime/base/ElementType.h"
#include "runtime/bundle/Expression.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace moert {

using namespace moec::bundle;

namespace {

// Of a launch or tensor; far beyond what a compiler emits, and it bounds what one launch allocates.
constexpr int mostDimensions = 4096;

class ProgramValidator {
public:
  ProgramValidator(const Program &program, const ProgramContext &context, const std::string &where,
                   Problems &problems)
      : program(program), context(context), where(where), problems(problems) {}

  void validate() {
    symbols();
    determined.assign(static_cast<std::size_t>(program.symbols_size()), false);
    if (context.isLoad &&
        program.inputs_size() + program.outputs_size() + program.states_size() != 0)
      complain("the load program has no inputs, outputs and states");
    tensors(program.inputs(), "input");
    tensors(program.outputs(), "output");
    for (const Tensor &input : program.inputs())
      for (const Expression &dimension : input.shape())
        determine(soleSymbol(dimension));
    states();
    for (int i = 0; i < program.symbols_size(); ++i)
      if (!determined[static_cast<std::size_t>(i)])
        complain("no input's dimension gives the symbol " + inQuotes(program.symbols(i)) +
                 " its value");
    arenas();
    buffers();
    for (int i = 0; i < program.commands_size(); ++i)
      command(program.commands(i), i);
  }

private:
  void complain(const std::string &message) { problems.add(where + ": " + message); }

  void determine(std::int64_t symbol) {
    if (symbol >= 0 && symbol < program.symbols_size())
      determined[static_cast<std::size_t>(symbol)] = true;
  }

  void expression(const Expression &expression, const std::string &what) {
    std::string problem =
        expressionProblem(expression, static_cast<std::uint64_t>(program.symbols_size()));
    if (!problem.empty())
      complain(what + ": the expression " + problem);
  }

  void uniqueName(const std::string &name, const std::string &kind,
                  std::unordered_set<std::string_view> &names) {
    if (name.empty())
      complain(kind + " without a name");
    else if (!names.insert(name).second)
      complain(kind + " " + inQuotes(name) + " occurs twice");
  }

  void symbols() {
    std::unordered_set<std::string_view> names;
    for (const std::string &symbol : program.symbols())
      uniqueName(symbol, "symbol", names);
  }

  void tensors(const google::protobuf::RepeatedPtrField<Tensor> &list, const std::string &kind) {
    std::unordered_set<std::string_view> names;
    for (const Tensor &tensor : list) {
      uniqueName(tensor.name(), kind, names);
      std::string what = kind + " " + inQuotes(tensor.name());
      if (storageBits(static_cast<moert::ElementType>(tensor.type())) == 0 ||
          !ElementType_IsValid(tensor.type()))
        complain(what + ": unknown element type " + std::to_string(tensor.type()));
      if (tensor.shape_size() > 32)
        complain(what + ": " + std::to_string(tensor.shape_size()) + " dimensions; at most 32");
      for (int i = 0; i < tensor.shape_size(); ++i)
        expression(tensor.shape(i), what + ": dimension " + std::to_string(i));
    }
  }

  void states() {
    std::unordered_set<std::string_view> names;
    for (const State &state : program.states()) {
      uniqueName(state.name(), "state", names);
      std::string what = "state " + inQuotes(state.name());
      if (state.bytes() == 0 || state.bytes() > INT64_MAX / 2)
        complain(what + ": blocks of " + std::to_string(state.bytes()) + " bytes");
      if (!State::Kind_IsValid(state.kind()))
        complain(what + ": unknown kind " + std::to_string(state.kind()));
      if (state.kind() == State::PAGED && state.block_tokens() == 0)
        complain(what + ": blocks of 0 tokens");
      if (state.pool_symbol() >= static_cast<std::uint32_t>(program.symbols_size()))
        complain(what + ": pool_symbol " + std::to_string(state.pool_symbol()) + " of " +
                 std::to_string(program.symbols_size()) + " symbols");
      else
        determine(state.pool_symbol());
    }
  }

  void arenas() {
    for (int i = 0; i < program.arenas_size(); ++i) {
      const Arena &arena = program.arenas(i);
      std::string what = "arenas[" + std::to_string(i) + "]";
      expression(arena.scale(), what + ": scale");
      if (arena.bytes() > INT64_MAX / 2)
        complain(what + ": " + std::to_string(arena.bytes()) + " bytes");
    }
  }

  void buffers() {
    for (int i = 0; i < program.buffers_size(); ++i) {
      const Buffer &buffer = program.buffers(i);
      std::string what = "buffers[" + std::to_string(i) + "] " + inQuotes(buffer.name());
      if (buffer.arena() >= static_cast<std::uint32_t>(program.arenas_size())) {
        complain(what + ": arena " + std::to_string(buffer.arena()) + " of " +
                 std::to_string(program.arenas_size()));
        continue;
      }
      std::uint64_t size = program.arenas(static_cast<int>(buffer.arena())).bytes();
      if (!rangeFits(buffer.offset(), buffer.bytes(), size))
        complain(what + ": " + std::to_string(buffer.bytes()) + " bytes at offset " +
                 std::to_string(buffer.offset()) + " of an arena of " + std::to_string(size));
      if (buffer.offset() % 64 != 0)
        complain(what + ": offset " + std::to_string(buffer.offset()) + " is no multiple of 64");
      if (buffer.first() > buffer.last())
        complain(what + ": lives from command " + std::to_string(buffer.first()) + " to " +
                 std::to_string(buffer.last()));
    }
    if (problems.empty())
      overlaps();
  }

  // No byte of an arena belongs to two buffers at once: a walk over the buffers in the order of
  // their births, with those that live then sorted by place.
  void overlaps() {
    std::vector<int> births(static_cast<std::size_t>(program.buffers_size()));
    std::iota(births.begin(), births.end(), 0);
    std::stable_sort(births.begin(), births.end(), [&](int a, int b) {
      return program.buffers(a).first() < program.buffers(b).first();
    });
    using Place = std::pair<std::uint32_t, std::uint64_t>; // arena, offset
    std::map<Place, int> alive;
    auto placeOf = [&](int i) {
      return Place(program.buffers(i).arena(), program.buffers(i).offset());
    };
    auto diesLater = [&](int a, int b) {
      return program.buffers(a).last() > program.buffers(b).last();
    };
    std::priority_queue<int, std::vector<int>, decltype(diesLater)> deaths(diesLater);
    for (int i : births) {
      const Buffer &buffer = program.buffers(i);
      if (buffer.bytes() == 0)
        continue;
      while (!deaths.empty() && program.buffers(deaths.top()).last() < buffer.first()) {
        alive.erase(placeOf(deaths.top()));
        deaths.pop();
      }
      auto next = alive.lower_bound(placeOf(i));
      int other = -1;
      if (next != alive.end() && next->first.first == buffer.arena() &&
          next->first.second < buffer.offset() + buffer.bytes())
        other = next->second;
      if (next != alive.begin()) {
        int before = std::prev(next)->second;
        const Buffer &left = program.buffers(before);
        if (left.arena() == buffer.arena() && left.offset() + left.bytes() > buffer.offset())
          other = before;
      }
      if (other >= 0) {
        complain("buffers[" + std::to_string(other) + "] and [" + std::to_string(i) +
                 "] share bytes of arena " + std::to_string(buffer.arena()) +
                 " while both are alive");
        return;
      }
      alive.emplace(placeOf(i), i);
      deaths.push(i);
    }
  }

  void index(std::uint32_t value, int size, const std::string &what, const char *kind) {
    if (value >= static_cast<std::uint32_t>(size))
      complain(what + ": " + kind + " " + std::to_string(value) + " of " + std::to_string(size));
  }

  void binding(const Binding &binding, int at, const std::string &what) {
    switch (binding.what_case()) {
    case Binding::kBuffer:
      index(binding.buffer(), program.buffers_size(), what, "buffer");
      if (binding.buffer() < static_cast<std::uint32_t>(program.buffers_size())) {
        const Buffer &buffer = program.buffers(static_cast<int>(binding.buffer()));
        if (static_cast<std::uint32_t>(at) < buffer.first() ||
            static_cast<std::uint32_t>(at) > buffer.last())
          complain(what + ": buffer " + std::to_string(binding.buffer()) +
                   " lives only from command " + std::to_string(buffer.first()) + " to " +
                   std::to_string(buffer.last()));
      }
      break;
    case Binding::kWeight:
      index(binding.weight(), static_cast<int>(context.isJoined.size()), what, "weight");
      if (binding.weight() < context.isJoined.size() && context.isJoined[binding.weight()])
        complain(what + ": weight " + std::to_string(binding.weight()) +
                 " lies behind another one, which must be named");
      break;
    case Binding::kGlobal:
      index(binding.global(), context.globals, what, "global");
      break;
    case Binding::kInput:
      index(binding.input(), program.inputs_size(), what, "input");
      break;
    case Binding::kOutput:
      index(binding.output(), program.outputs_size(), what, "output");
      break;
    case Binding::kState:
      index(binding.state(), program.states_size(), what, "state");
      break;
    default:
      complain(what + ": bound to nothing");
    }
  }

  void command(const Command &command, int at) {
    std::string what = "commands[" + std::to_string(at) + "]";
    if (command.has_copy()) {
      binding(command.copy().from(), at, what + ": from");
      binding(command.copy().to(), at, what + ": to");
      expression(command.copy().bytes(), what + ": bytes");
      return;
    }
    if (!command.has_launch()) {
      complain(what + ": neither a launch nor a copy");
      return;
    }
    const Launch &launch = command.launch();
    what += " " + inQuotes(launch.kernel());
    if (launch.kernel().empty())
      complain(what + ": the kernel has no name");
    if (launch.bindings_size() > mostDimensions || launch.dimensions_size() > mostDimensions) {
      complain(what + ": more than " + std::to_string(mostDimensions) + " bindings or dimensions");
      return;
    }
    for (int i = 0; i < launch.bindings_size(); ++i)
      binding(launch.bindings(i), at, what + ": bindings[" + std::to_string(i) + "]");
    if (launch.binding_bytes_size() != launch.bindings_size())
      complain(what + ": " + std::to_string(launch.binding_bytes_size()) + " binding_bytes for " +
               std::to_string(launch.bindings_size()) + " bindings");
    for (int i = 0; i < launch.binding_bytes_size(); ++i)
      expression(launch.binding_bytes(i), what + ": binding_bytes[" + std::to_string(i) + "]");
    for (int i = 0; i < launch.dimensions_size(); ++i)
      expression(launch.dimensions(i), what + ": dimensions[" + std::to_string(i) + "]");
    expression(launch.workgroups(), what + ": workgroups");
    if (launch.has_scratch_bytes())
      expression(launch.scratch_bytes(), what + ": scratch_bytes");
    if (launch.has_flops())
      expression(launch.flops(), what + ": flops");
    if (launch.has_bytes_moved())
      expression(launch.bytes_moved(), what + ": bytes_moved");
    validateCudaLaunch(launch, context, program.symbols_size(), where + ": " + what, problems);
  }

  const Program &program;
  const ProgramContext &context;
  const std::string &where;
  Problems &problems;
  std::vector<bool> determined; // by symbol
};

const Tensor *findTensor(const google::protobuf::RepeatedPtrField<Tensor> &list,
                         std::string_view name) {
  for (const Tensor &tensor : list)
    if (tensor.name() == name)
      return &tensor;
  return nullptr;
}

} // namespace

void validateProgram(const Program &program, const ProgramContext &context,
                     const std::string &where, Problems &problems) {
  ProgramValidator(program, context, where, problems).validate();
}

void validateLanguageModelEntry(const Program &entry, const LanguageModel &model,
                                const std::string &where, Problems &problems) {
  auto complain = [&](const std::string &message) { problems.add(where + ": " + message); };
  bool paged = false, slots = false;
  for (const State &state : entry.states()) {
    paged |= state.kind() == State::PAGED;
    slots |= state.kind() == State::SLOT;
    // Fewer where what a block of tokens leaves behind is compressed.
    if (state.kind() == State::PAGED && state.block_tokens() > model.block_tokens())
      complain("state " + inQuotes(state.name()) + " has blocks of " +
               std::to_string(state.block_tokens()) + " tokens, the model of " +
               std::to_string(model.block_tokens()));
  }
  struct Wanted {
    const char *field;
    const std::string &name;
    int rank;
    bool required;
  };
  const Wanted inputs[] = {
      {"tokens", model.tokens(), 1, true},
      {"positions", model.positions(), 1, false},
      {"token_sequences", model.token_sequences(), 1, false},
      {"sequence_offsets", model.sequence_offsets(), 1, false},
      {"block_table", model.block_table(), 2, paged},
      {"state_slots", model.state_slots(), 1, slots},
      {"logit_rows", model.logit_rows(), 1, true},
      {"image_rows", model.vision().image_rows(), 1, model.has_vision()},
  };
  std::unordered_set<std::string_view> named;
  for (const Wanted &wanted : inputs) {
    if (wanted.name.empty()) {
      if (wanted.required)
        complain(std::string(wanted.field) + " is not named");
      continue;
    }
    if (!named.insert(wanted.name).second)
      complain(std::string(wanted.field) + ": the input " + inQuotes(wanted.name) +
               " has two meanings");
    const Tensor *tensor = findTensor(entry.inputs(), wanted.name);
    if (!tensor)
      complain(std::string(wanted.field) + ": the entry has no input " + inQuotes(wanted.name));
    else if (tensor->type() != moec::bundle::I32 || tensor->shape_size() != wanted.rank)
      complain(std::string(wanted.field) + ": the input " + inQuotes(wanted.name) +
               " is no i32 tensor of " + std::to_string(wanted.rank) + " dimensions");
  }
  if (model.has_vision()) {
    const std::string &name = model.vision().image_embeddings();
    named.insert(name);
    const Tensor *tensor = findTensor(entry.inputs(), name);
    if (!tensor)
      complain("image_embeddings: the entry has no input " + inQuotes(name));
    else if (tensor->shape_size() != 2)
      complain("image_embeddings: the input " + inQuotes(name) + " is no tensor of 2 dimensions");
  }
  for (const Tensor &input : entry.inputs())
    if (!named.count(input.name()))
      complain("nothing says what the input " + inQuotes(input.name()) + " means");
  const Tensor *logits = findTensor(entry.outputs(), model.logits());
  if (!logits)
    complain("logits: the entry has no output " + inQuotes(model.logits()));
  else if (logits->type() != moec::bundle::F32 || logits->shape_size() != 2)
    complain("logits: the output " + inQuotes(model.logits()) +
             " is no f32 tensor of 2 dimensions");
}

void validateSamplerEntry(const Program &entry, std::uint32_t vocabulary, const std::string &where,
                          Problems &problems) {
  auto complain = [&](const std::string &message) { problems.add(where + ": " + message); };
  auto check = [&](const auto &tensors, const char *kind, const char *name,
                   moec::bundle::ElementType type, int rank) -> const Tensor * {
    const Tensor *tensor = findTensor(tensors, name);
    if (tensor && tensor->type() == type && tensor->shape_size() == rank)
      return tensor;
    complain(std::string("the ") + kind + " " + inQuotes(name) +
             (tensor ? " has another type or rank" : " is missing"));
    return nullptr;
  };
  const Tensor *logits = check(entry.inputs(), "input", "logits", moec::bundle::F32, 2);
  if (logits && (logits->shape(1).steps_size() != 1 ||
                 logits->shape(1).steps(0).operator_() != Expression::CONSTANT ||
                 logits->shape(1).steps(0).value() != vocabulary))
    complain("the logits do not have the " + std::to_string(vocabulary) +
             " columns of the vocabulary");
  check(entry.inputs(), "input", "rows", moec::bundle::I32, 1);
  check(entry.inputs(), "input", "temperature", moec::bundle::F32, 1);
  check(entry.inputs(), "input", "top_k", moec::bundle::I32, 1);
  check(entry.inputs(), "input", "top_p", moec::bundle::F64, 1);
  check(entry.inputs(), "input", "random", moec::bundle::F64, 1);
  check(entry.outputs(), "output", "tokens", moec::bundle::I32, 1);
  if (entry.inputs_size() != 6 || entry.outputs_size() != 1 || entry.states_size() != 0)
    complain("an entry that chooses tokens has 6 inputs, 1 output and no states");
}

} // namespace moert
