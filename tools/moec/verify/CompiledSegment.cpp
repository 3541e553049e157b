#include "tools/moec/verify/CompiledSegment.h"

#include "moec/Compiler/Compiler.h"
#include "moec/Dialect/MoE/IR/MoE.h"

#include "runtime/device/Device.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace moec::verify {

using moert::ErrorCode;
using moert::Result;
using moert::Status;
using mlir::moec::moe::ReferenceTensor;
using mlir::moec::moe::ReferenceValue;

Result<std::unique_ptr<CompiledSegment>> CompiledSegment::create(mlir::ModuleOp module, const Target &target,
                                                                 const std::string &folder,
                                                                 DiagnosticStatus &diagnostics) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  std::string source = moert::joinPath(folder, "segment.mlir"), path = moert::joinPath(folder, "segment.moeb");
  MOERT_RETURN_IF_ERROR(moert::writeFileAtomic(source, text));
  mlir::moec::CompileOptions options;
  options.input = source;
  options.output = path;
  options.targets = {target.name};
  options.batchInvariant = target.batchInvariant;
  options.ptxOnly = target.ptxOnly;
  if (failed(mlir::moec::compile(options, *module.getContext())))
    return diagnostics.take(source, "internal error: cannot be compiled");

  std::unique_ptr<CompiledSegment> segment(new CompiledSegment);
  MOERT_ASSIGN_OR_RETURN(auto bundle, moert::Bundle::open(path));
  moert::LoadOptions load;
  load.threads = target.threads;
  load.device = target.device;
  load.captureGraphs = false;
  MOERT_ASSIGN_OR_RETURN(segment->model, moert::Model::load(std::move(bundle), load));
  auto function = *module.getOps<mlir::func::FuncOp>().begin();
  segment->program = segment->model->loaded().entry(function.getName());
  if (!segment->program)
    return Status(ErrorCode::Internal, "the program is not in its bundle", path);
  const moec::bundle::Program &description = segment->program->source();
  auto findArgument = [&](const std::string &name) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto attribute = function.getArgAttrOfType<mlir::StringAttr>(i, "moe.name"); attribute && attribute.getValue() == name)
        return i;
    return function.getNumArguments();
  };
  for (const moec::bundle::Tensor &input : description.inputs())
    segment->inputs.push_back(findArgument(input.name()));
  for (const moec::bundle::State &state : description.states())
    segment->states.push_back(findArgument(state.name()));
  if (llvm::is_contained(segment->inputs, function.getNumArguments()) ||
      llvm::is_contained(segment->states, function.getNumArguments()))
    return Status(ErrorCode::Internal, "the compiled program has inputs that its source has not", source);
  segment->resultTypes.assign(function.getResultTypes().begin(), function.getResultTypes().end());
  segment->memory.resize(segment->states.size());
  segment->runner = std::make_unique<moert::ProgramRunner>(segment->model->loaded().runner(*segment->program));
  return segment;
}

// How many blocks or slots there are.
static std::uint64_t countPool(const ReferenceValue &value) {
  if (value.is<std::shared_ptr<mlir::moec::moe::ReferenceCache>>())
    return static_cast<std::uint64_t>(value.getCache().getBlocks());
  return static_cast<std::uint64_t>(value.getState().slots.getDimSize(0));
}

Result<std::vector<ReferenceTensor>> CompiledSegment::run(mlir::ArrayRef<ReferenceValue> arguments) {
  const moec::bundle::Program &description = program->source();
  moert::Device &device = *model->device();
  std::vector<moert::ProgramRunner::Shape> shapes;
  for (unsigned index : inputs) {
    mlir::ArrayRef<int64_t> shape = arguments[index].getTensor().getShape();
    shapes.emplace_back(shape.begin(), shape.end());
  }
  std::vector<moert::MemorySpan> pools;
  for (auto [i, index] : llvm::enumerate(states)) {
    const moec::bundle::State &state = description.states(static_cast<int>(i));
    std::uint64_t bytes = countPool(arguments[index]) * state.bytes();
    if (memory[i].size() < bytes)
      MOERT_RETURN_IF_ERROR(device.grow(memory[i], bytes, "state " + state.name()));
    pools.push_back({memory[i].data(), bytes});
  }
  MOERT_RETURN_IF_ERROR(runner->prepare(shapes, pools));
  for (auto [i, index] : llvm::enumerate(inputs)) {
    mlir::ArrayRef<std::byte> bytes = arguments[index].getTensor().getBytes();
    std::span<std::byte> to = runner->input(i);
    if (to.size() != bytes.size())
      return Status(ErrorCode::Internal, "input " + description.inputs(static_cast<int>(i)).name() + " takes " +
                                             std::to_string(to.size()) + " bytes, not " + std::to_string(bytes.size()));
    llvm::copy(bytes, to.begin());
  }
  MOERT_RETURN_IF_ERROR(runner->run());
  std::vector<ReferenceTensor> results;
  for (auto [i, type] : llvm::enumerate(resultTypes)) {
    int output = program->outputIndex("r" + std::to_string(i));
    if (output < 0)
      return Status(ErrorCode::Internal, "the compiled program has no output r" + std::to_string(i));
    auto index = static_cast<std::size_t>(output);
    auto tensor = ReferenceTensor::create(llvm::cast<mlir::RankedTensorType>(type).getElementType(),
                                          runner->outputShape(index));
    std::span<std::byte> bytes = runner->output(index);
    if (failed(tensor) || tensor->getBytes().size() != bytes.size())
      return Status(ErrorCode::Unsupported, "a result of the compiled program has a type that cannot be compared");
    llvm::copy(bytes, tensor->getMutableBytes().begin());
    results.push_back(*std::move(tensor));
  }
  return results;
}

} // namespace moec::verify
