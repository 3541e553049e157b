#include "tools/moec/verify/CompiledSegment.h"

#include "moec/Compiler/Compiler.h"
#include "moec/Dialect/MoE/IR/MoE.h"

#include "runtime/device/Device.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <filesystem>

namespace moec::verify {

using mlir::moec::moe::ReferenceTensor;
using mlir::moec::moe::ReferenceValue;
using moert::ErrorCode;
using moert::Result;
using moert::Status;

//===------------------------------------------------------------------------------------------===//
// Compiling
//===------------------------------------------------------------------------------------------===//

std::string SegmentCompiler::makeKey(mlir::ModuleOp module, std::vector<WeightPart> &weights) {
  using mlir::moec::moe::WeightRefAttr;
  mlir::OwningOpRef<mlir::ModuleOp> copy = module.clone();
  std::map<std::tuple<std::string, std::string, std::uint64_t>, std::size_t>
      places; // the same tensor has the same place
  auto stand = [&](mlir::StringRef name, WeightRefAttr ref) {
    auto [place, isNew] =
        places.try_emplace({name.str(), ref.getFile().str(), ref.getOffset()}, weights.size());
    if (isNew)
      weights.push_back({name.str(), ref.getFile().str(), ref.getOffset(), ref.getBytes()});
    return WeightRefAttr::get(ref.getContext(), "weight", place->second, ref.getBytes());
  };
  copy->walk([&](mlir::moec::moe::WeightOp op) {
    mlir::SmallVector<mlir::Attribute> refs, names;
    for (auto [name, ref] : op.getParts()) {
      refs.push_back(stand(name, ref));
      names.push_back(mlir::StringAttr::get(op.getContext(), "weight"));
    }
    op.setNameAttr(llvm::cast<mlir::StringAttr>(names.front()));
    op.setRefAttr(llvm::cast<WeightRefAttr>(refs.front()));
    if (!op.getMoreRefs())
      return;
    op.setMoreNamesAttr(mlir::ArrayAttr::get(op.getContext(), llvm::ArrayRef(names).drop_front()));
    op.setMoreRefsAttr(mlir::ArrayAttr::get(op.getContext(), llvm::ArrayRef(refs).drop_front()));
  });
  // Caches and states are called after their layer.
  for (auto function : copy->getOps<mlir::func::FuncOp>())
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (llvm::isa<mlir::moec::moe::CacheType, mlir::moec::moe::StateType>(
              function.getArgumentTypes()[i]))
        function.removeArgAttr(i, "moe.name");
  std::string text;
  llvm::raw_string_ostream stream(text);
  copy->print(stream);
  return text;
}

Status SegmentCompiler::replaceWeights(const Compiled &other,
                                       const std::vector<WeightPart> &weights,
                                       const std::string &path) {
  std::error_code error;
  std::filesystem::copy(other.bundle, path, std::filesystem::copy_options::recursive, error);
  if (error)
    return Status(ErrorCode::InputOutput, error.message(), path);
  moert::OpenOptions options;
  options.openWeightFiles = false;
  MOERT_ASSIGN_OR_RETURN(auto bundle, moert::Bundle::open(path, options));
  moec::bundle::Manifest manifest = bundle->manifest();
  manifest.clear_weight_files();
  std::map<std::string, unsigned> files;
  for (moec::bundle::Weight &weight : *manifest.mutable_weights()) {
    std::size_t place = 0;
    // Names of one program are those of one model: no two tensors share one.
    while (place < weights.size() && (other.weights[place].name != weight.name() ||
                                      other.weights[place].offset != weight.offset()))
      ++place;
    if (place == weights.size())
      return Status(ErrorCode::Internal,
                    "weight " + moert::inQuotes(weight.name()) + " is not the program's",
                    other.bundle);
    const WeightPart &part = weights[place];
    auto [file, isNew] = files.try_emplace(part.file, static_cast<unsigned>(files.size()));
    if (isNew) {
      std::string place = "/" + part.file;
      MOERT_ASSIGN_OR_RETURN(moert::File opened, moert::File::open(place));
      moec::bundle::WeightFile &entry = *manifest.add_weight_files();
      entry.set_path(place);
      entry.set_bytes(opened.size());
    }
    weight.set_name(part.name);
    weight.set_file(file->second);
    weight.set_offset(part.offset);
    weight.clear_sha256();
  }
  return moert::writeManifest(path, manifest);
}

Result<std::string> SegmentCompiler::compile(mlir::ModuleOp module) {
  std::string name = "segment" + std::to_string(count++);
  std::string source = moert::joinPath(folder, name + ".mlir"),
              path = moert::joinPath(folder, name + ".moeb");
  std::vector<WeightPart> weights;
  std::string key = makeKey(module, weights);
  if (auto found = known.find(key); found != known.end()) {
    MOERT_RETURN_IF_ERROR(replaceWeights(found->second, weights, path));
    return path;
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  MOERT_RETURN_IF_ERROR(moert::writeFileAtomic(source, text));
  mlir::moec::CompileOptions options;
  options.input = source;
  options.output = path;
  options.targets = {target.name};
  options.batchInvariant = target.batchInvariant;
  options.ptxOnly = target.ptxOnly;
  if (failed(mlir::moec::compile(options, *module.getContext())))
    return diagnostics.take(source, "internal error: cannot be compiled");
  known[key] = {path, std::move(weights)};
  return path;
}

//===------------------------------------------------------------------------------------------===//
// Running
//===------------------------------------------------------------------------------------------===//

Result<std::unique_ptr<CompiledSegment>> CompiledSegment::create(mlir::ModuleOp module,
                                                                 SegmentCompiler &compiler) {
  MOERT_ASSIGN_OR_RETURN(std::string path, compiler.compile(module));
  std::unique_ptr<CompiledSegment> segment(new CompiledSegment);
  MOERT_ASSIGN_OR_RETURN(auto bundle, moert::Bundle::open(path));
  moert::LoadOptions load;
  load.threads = compiler.getTarget().threads;
  load.device = compiler.getTarget().device;
  load.captureGraphs = false;
  MOERT_ASSIGN_OR_RETURN(segment->model, moert::Model::load(std::move(bundle), load));
  auto function = *module.getOps<mlir::func::FuncOp>().begin();
  segment->program = segment->model->loaded().entry(function.getName());
  if (!segment->program)
    return Status(ErrorCode::Internal, "the program is not in its bundle", path);
  const moec::bundle::Program &description = segment->program->source();
  // Inputs by their names; caches and states, whose names may be another layer's, by their order.
  auto findInput = [&](const std::string &name) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto attribute = function.getArgAttrOfType<mlir::StringAttr>(i, "moe.name");
          attribute && attribute.getValue() == name)
        return i;
    return function.getNumArguments();
  };
  for (const moec::bundle::Tensor &input : description.inputs())
    segment->inputs.push_back(findInput(input.name()));
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (llvm::isa<mlir::moec::moe::CacheType, mlir::moec::moe::StateType>(
            function.getArgumentTypes()[i]))
      segment->states.push_back(i);
  if (llvm::is_contained(segment->inputs, function.getNumArguments()) ||
      segment->states.size() != static_cast<std::size_t>(description.states_size()))
    return Status(ErrorCode::Internal, "the compiled program has other inputs than its source",
                  path);
  segment->resultTypes.assign(function.getResultTypes().begin(), function.getResultTypes().end());
  segment->memory.resize(segment->states.size());
  segment->runner =
      std::make_unique<moert::ProgramRunner>(segment->model->loaded().runner(*segment->program));
  return segment;
}

// How many blocks or slots there are.
static std::uint64_t countPool(const ReferenceValue &value) {
  if (value.is<std::shared_ptr<mlir::moec::moe::ReferenceCache>>())
    return static_cast<std::uint64_t>(value.getCache().getBlocks());
  return static_cast<std::uint64_t>(value.getState().slots.getDimSize(0));
}

Result<std::vector<ReferenceTensor>>
CompiledSegment::run(mlir::ArrayRef<ReferenceValue> arguments) {
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
      return Status(ErrorCode::Internal, "input " + description.inputs(static_cast<int>(i)).name() +
                                             " takes " + std::to_string(to.size()) +
                                             " bytes, not " + std::to_string(bytes.size()));
    llvm::copy(bytes, to.begin());
  }
  MOERT_RETURN_IF_ERROR(runner->run());
  std::vector<ReferenceTensor> results;
  for (auto [i, type] : llvm::enumerate(resultTypes)) {
    int output = program->outputIndex("r" + std::to_string(i));
    if (output < 0)
      return Status(ErrorCode::Internal,
                    "the compiled program has no output r" + std::to_string(i));
    auto index = static_cast<std::size_t>(output);
    auto tensor = ReferenceTensor::create(llvm::cast<mlir::RankedTensorType>(type).getElementType(),
                                          runner->outputShape(index));
    std::span<std::byte> bytes = runner->output(index);
    if (failed(tensor) || tensor->getBytes().size() != bytes.size())
      return Status(ErrorCode::Unsupported,
                    "a result of the compiled program has a type that cannot be compared");
    llvm::copy(bytes, tensor->getMutableBytes().begin());
    results.push_back(*std::move(tensor));
  }
  return results;
}

} // namespace moec::verify
