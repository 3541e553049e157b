#include "runtime/session/Model.h"

#include "runtime/base/CheckedMath.h"
#include "runtime/session/ChooseVariant.h"
#include "runtime/session/Variant.h"

#include <cstring>

namespace moert {

Model::~Model() = default;

Result<std::shared_ptr<const Model>> Model::load(std::shared_ptr<const Bundle> bundle,
                                                 const LoadOptions &options) {
  MOERT_ASSIGN_OR_RETURN(DeviceChoice wanted, parseDevice(options.device));
  MOERT_ASSIGN_OR_RETURN(VariantChoice choice, chooseVariant(bundle->manifest(), options.variant,
                                                             wanted, bundle->path()));
  if (!bundle->hasWeightFiles())
    return Status(ErrorCode::WrongState, "the bundle was opened without its weight files",
                  bundle->path());
  std::shared_ptr<Model> model(new Model);
  model->source = std::move(bundle);
  MOERT_ASSIGN_OR_RETURN(model->runsOn, openDevice(choice, options.threads));
  MOERT_ASSIGN_OR_RETURN(model->code,
                         LoadedVariant::load(*model->source, *choice.variant, model->runsOn,
                                             options.captureGraphs, options.progress));
  return std::shared_ptr<const Model>(std::move(model));
}

const std::string &Model::variant() const { return code->source().target(); }
unsigned Model::threads() const { return runsOn->threads(); }
MemoryUse Model::memory() const { return code->memory(); }

std::vector<std::string> Model::entries() const {
  std::vector<std::string> names;
  for (const moec::bundle::Program &entry : code->source().entries())
    names.push_back(entry.name());
  return names;
}

namespace {

// Pools of zeros for one run; their number of blocks comes from an input's dimension.
Status makeStates(const moec::bundle::Program &program,
                  std::span<const ProgramRunner::Shape> shapes, Device &device,
                  std::vector<DeviceMemory> &memory, std::vector<MemorySpan> &spans) {
  for (const moec::bundle::State &state : program.states()) {
    std::int64_t blocks = -1;
    for (int i = 0; i < program.inputs_size(); ++i)
      for (int d = 0; d < program.inputs(i).shape_size(); ++d)
        if (soleSymbol(program.inputs(i).shape(d)) == state.pool_symbol() &&
            static_cast<std::size_t>(d) < shapes[static_cast<std::size_t>(i)].size())
          blocks = shapes[static_cast<std::size_t>(i)][static_cast<std::size_t>(d)];
    if (blocks < 0)
      return {ErrorCode::Unsupported,
              "the entry keeps state " + inQuotes(state.name()) +
                  ", and no input says how much; it cannot run on plain tensors",
              "entry " + inQuotes(program.name()), "run it as a language model"};
    std::uint64_t bytes;
    if (!checkedMultiply<std::uint64_t>(static_cast<std::uint64_t>(blocks), state.bytes(), bytes))
      return {ErrorCode::InvalidArgument, "state " + inQuotes(state.name()) + " is too large"};
    DeviceMemory pool;
    MOERT_RETURN_IF_ERROR(device.grow(pool, bytes, "state " + inQuotes(state.name())));
    spans.push_back({pool.data(), bytes});
    memory.push_back(std::move(pool));
  }
  return {};
}

} // namespace

Result<std::map<std::string, Tensor>> Model::run(std::string_view entry,
                                                 const std::map<std::string, Tensor> &inputs,
                                                 RunProfile *profile,
                                                 Timeline *timeline) const {
  std::string names;
  for (const std::string &name : entries())
    names += (names.empty() ? "" : ", ") + name;
  if (entry.empty()) {
    if (code->source().entries_size() != 1)
      return Status(ErrorCode::InvalidArgument, "the bundle has several entries: " + names,
                    source->path(), "name one");
    entry = code->source().entries(0).name();
  }
  const CompiledProgram *program = code->entry(entry);
  if (!program)
    return Status(ErrorCode::NotFound,
                  "the bundle has no entry " + inQuotes(entry) + "; it has " + names,
                  source->path());

  const moec::bundle::Program &description = program->source();
  Problems problems("entry " + inQuotes(entry));
  for (auto &[name, tensor] : inputs)
    if (program->inputIndex(name) < 0)
      problems.add("there is no input " + inQuotes(name));
  std::vector<ProgramRunner::Shape> shapes;
  std::vector<const Tensor *> values;
  for (const moec::bundle::Tensor &input : description.inputs()) {
    auto found = inputs.find(input.name());
    if (found == inputs.end()) {
      problems.add("the input " + inQuotes(input.name()) + " is missing");
      continue;
    }
    const Tensor &tensor = found->second;
    auto bytes = tensorBytes(tensor.type, tensor.shape);
    if (tensor.type != elementType(input.type()))
      problems.add("input " + inQuotes(input.name()) + ": expected " +
                   std::string(elementTypeName(elementType(input.type()))) + ", found " +
                   std::string(elementTypeName(tensor.type)));
    else if (!bytes || *bytes != tensor.data.size())
      problems.add("input " + inQuotes(input.name()) + ": shape " + shapeToString(tensor.shape) +
                   " does not take " + std::to_string(tensor.data.size()) + " bytes");
    shapes.push_back(tensor.shape);
    values.push_back(&tensor);
  }
  MOERT_RETURN_IF_ERROR(problems.toStatus(ErrorCode::InvalidArgument));

  std::vector<DeviceMemory> stateMemory;
  std::vector<MemorySpan> states;
  MOERT_RETURN_IF_ERROR(makeStates(description, shapes, *runsOn, stateMemory, states));
  ProgramRunner runner = code->runner(*program);
  MOERT_RETURN_IF_ERROR(runner.prepare(shapes, states));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!values[i]->data.empty())
      std::memcpy(runner.input(i).data(), values[i]->data.data(), values[i]->data.size());
  runner.setProfiling(profile != nullptr, timeline);
  MOERT_RETURN_IF_ERROR(runner.run());
  if (profile) {
    profile->launches = runner.profile();
    MOERT_ASSIGN_OR_RETURN(profile->seconds, runner.runTimed());
  }
  std::map<std::string, Tensor> outputs;
  for (int i = 0; i < description.outputs_size(); ++i) {
    auto index = static_cast<std::size_t>(i);
    std::span<std::byte> bytes = runner.output(index);
    outputs[description.outputs(i).name()] = {elementType(description.outputs(i).type()),
                                              runner.outputShape(index),
                                              {bytes.begin(), bytes.end()}};
  }
  return outputs;
}

} // namespace moert
