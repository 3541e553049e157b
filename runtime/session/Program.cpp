#include "runtime/session/Program.h"

namespace moert {

using moec::bundle::Binding;
using moec::bundle::Launch;

namespace {

template <typename List>
int findByName(const List &list, std::string_view name) {
  for (int i = 0; i < list.size(); ++i)
    if (list[i].name() == name)
      return i;
  return -1;
}

template <typename List>
std::vector<SizeExpression> expressions(const List &list) {
  std::vector<SizeExpression> result;
  for (const moec::bundle::Expression &each : list)
    result.emplace_back(each);
  return result;
}

} // namespace

Result<CompiledProgram> CompiledProgram::create(const moec::bundle::Program &program,
                                                KernelSet &kernels, std::string_view place) {
  auto operand = [](const Binding &binding) -> Operand {
    switch (binding.what_case()) {
    case Binding::kWeight:
      return {Kind::Weight, binding.weight()};
    case Binding::kGlobal:
      return {Kind::Global, binding.global()};
    case Binding::kInput:
      return {Kind::Input, binding.input()};
    case Binding::kOutput:
      return {Kind::Output, binding.output()};
    case Binding::kState:
      return {Kind::State, binding.state()};
    default:
      return {Kind::Buffer, binding.buffer()};
    }
  };
  Problems problems{std::string(place)};
  CompiledProgram result;
  result.program = &program;
  for (const moec::bundle::Tensor &input : program.inputs())
    result.inputShapes.push_back(expressions(input.shape()));
  for (const moec::bundle::Tensor &output : program.outputs())
    result.outputShapes.push_back(expressions(output.shape()));
  for (const moec::bundle::Arena &arena : program.arenas())
    result.arenaScales.emplace_back(arena.scale());
  for (const moec::bundle::Command &each : program.commands()) {
    Command command;
    if (each.has_copy()) {
      command.operands = {operand(each.copy().from()), operand(each.copy().to())};
      command.operandBytes.assign(2, SizeExpression(each.copy().bytes()));
      result.commands.push_back(std::move(command));
      continue;
    }
    const Launch &launch = each.launch();
    command.shape = {launch.threads(), launch.shared_bytes(), launch.overlap()};
    command.parameters = {static_cast<std::uint32_t>(launch.bindings_size()),
                          static_cast<std::uint32_t>(launch.dimensions_size()),
                          static_cast<std::uint32_t>(launch.tensor_maps_size()),
                          launch.has_scratch_bytes()};
    Result<KernelHandle> kernel = kernels.find(launch.kernel(), command.shape, command.parameters);
    if (kernel.isOk())
      command.kernel = *kernel;
    else
      problems.add(kernel.status().message());
    for (const Binding &binding : launch.bindings())
      command.operands.push_back(operand(binding));
    command.operandBytes = expressions(launch.binding_bytes());
    command.dimensions = expressions(launch.dimensions());
    command.workgroups = SizeExpression(launch.workgroups());
    command.scratchBytes = SizeExpression(launch.scratch_bytes());
    command.flops = SizeExpression(launch.flops());
    command.bytesMoved = SizeExpression(launch.bytes_moved());
    for (const moec::bundle::TensorMap &map : launch.tensor_maps())
      command.tensorMaps.push_back(makeTensorMap(map));
    result.commands.push_back(std::move(command));
  }
  MOERT_RETURN_IF_ERROR(problems.toStatus(ErrorCode::InvalidData));
  return result;
}

CompiledProgram::TensorMap CompiledProgram::makeTensorMap(const moec::bundle::TensorMap &map) {
  TensorMap result;
  result.operand = map.binding();
  result.shape.type = elementType(map.type());
  result.shape.rank = static_cast<std::uint32_t>(map.sizes_size());
  // The schema's numbers are the same.
  result.shape.swizzle = static_cast<TensorMapShape::Swizzle>(map.swizzle());
  for (int i = 0; i < map.box_size(); ++i)
    result.shape.box[i] = map.box(i);
  result.sizes = expressions(map.sizes());
  result.strides = expressions(map.strides_bytes());
  return result;
}

int CompiledProgram::inputIndex(std::string_view name) const {
  return findByName(program->inputs(), name);
}

int CompiledProgram::outputIndex(std::string_view name) const {
  return findByName(program->outputs(), name);
}

} // namespace moert
