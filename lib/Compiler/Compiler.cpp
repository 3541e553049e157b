#include "moec/Compiler/Compiler.h"

#include "DescribeModel.h"

#include "moec/Compiler/RunPasses.h"
#include "moec/Compiler/Segments.h"
#include "moec/Conversion/CompileKernels.h"
#include "moec/Conversion/ExportBundle.h"
#include "moec/Target/TargetDescription.h"

#include "runtime/base/File.h"

#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::moec;

static constexpr llvm::StringLiteral phaseNames[] = {"moe",    "opt",    "plan",
                                                     "kernel", "target", "bundle"};

std::optional<Phase> mlir::moec::parsePhase(StringRef name) {
  for (auto [index, phase] : llvm::enumerate(phaseNames))
    if (phase == name)
      return static_cast<Phase>(index);
  return std::nullopt;
}

StringRef mlir::moec::getPhaseName(Phase phase) { return phaseNames[static_cast<int>(phase)]; }

namespace {

class Compilation {
public:
  Compilation(const CompileOptions &options, MLIRContext &context)
      : options(options), context(context) {}

  LogicalResult run();

private:
  LogicalResult checkOptions();
  FailureOr<OwningOpRef<ModuleOp>> readInput();
  LogicalResult embedReferenceText(ModuleOp module);
  /// Runs the phases after `from` up to `to` on one variant's module.
  LogicalResult lower(ModuleOp module);
  LogicalResult runPhase(ModuleOp module, Phase phase);
  LogicalResult dump(ModuleOp module, Phase phase);
  LogicalResult writeText(ModuleOp module, Phase phase, StringRef path);

  const CompileOptions &options;
  MLIRContext &context;
  std::vector<TargetDescription> targets;
};

InFlightDiagnostic report(MLIRContext &context) { return emitError(UnknownLoc::get(&context)); }

LogicalResult Compilation::checkOptions() {
  if (options.from > options.to)
    return report(context) << "--from=" << getPhaseName(options.from)
                           << " is later than --to=" << getPhaseName(options.to);
  if (options.from == Phase::Bundle)
    return report(context) << "--from=bundle: a bundle is finished, there is nothing to compile";
  bool oneTarget = options.from != Phase::Moe ||
                   (options.to != Phase::Moe && options.to != Phase::Bundle) ||
                   !options.dumpFolder.empty();
  if (oneTarget && options.targets.size() > 1)
    return report(context) << "a text of one phase is for one target, got "
                           << options.targets.size() << " targets";
  for (const std::string &name : options.targets) {
    std::string error;
    FailureOr<TargetDescription> target = TargetDescription::parse(name, error);
    if (failed(target))
      return report(context) << error;
    target->batchInvariant = options.batchInvariant;
    targets.push_back(*target);
  }
  std::vector<std::string> optimising = getOptimisingPasses();
  for (const std::string &name : options.pipeline.disabledPasses)
    if (!llvm::is_contained(optimising, name)) {
      InFlightDiagnostic error =
          report(context) << "\"" << name << "\" is no pass that can be left out; these are: ";
      llvm::interleaveComma(optimising, error);
      return error;
    }
  return success();
}

FailureOr<OwningOpRef<ModuleOp>> Compilation::readInput() {
  StringRef input = options.input;
  if (llvm::sys::fs::is_directory(input))
    return importCheckpoint(input, options.checkpoint, &context);
  if (input.ends_with(".onnx"))
    return importONNX(input, options.onnx, &context);
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer = openInputFile(input, &error);
  if (!buffer)
    return report(context) << error;
  if (!input.ends_with(".mlir") && input != "-")
    return report(context) << input
                           << ": expects a checkpoint folder, an .onnx file or an .mlir file";
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return failure();
  return module;
}

/// The text of phase moe keeps what the model calls its ops, which is what `moec verify` calls them. Other locations, of files,
/// are left out: they say where a text once lay.
static void printWithNames(ModuleOp module, llvm::raw_ostream &stream) {
  OwningOpRef<ModuleOp> copy = module.clone();
  auto keep = [](Location location) -> Location {
    std::string name = getLocationName(location);
    if (name.empty())
      return UnknownLoc::get(location.getContext());
    return NameLoc::get(StringAttr::get(location.getContext(), name));
  };
  copy->walk([&](Operation *op) {
    op->setLoc(keep(op->getLoc()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setLoc(keep(argument.getLoc()));
  });
  copy->print(stream, OpPrintingFlags().enableDebugInfo());
}

LogicalResult Compilation::embedReferenceText(ModuleOp module) {
  if (module->hasAttr(referenceTextAttr))
    return success();
  std::string text;
  llvm::raw_string_ostream stream(text);
  printWithNames(module, stream);
  auto type =
      RankedTensorType::get({static_cast<int64_t>(text.size())}, IntegerType::get(&context, 8));
  AsmResourceBlob blob =
      HeapAsmResourceBlob::allocateAndCopyWithAlign(ArrayRef<char>(text.data(), text.size()), 1);
  module->setAttr(referenceTextAttr,
                  DenseResourceElementsAttr::get(type, "moec_reference", std::move(blob)));
  return success();
}

LogicalResult Compilation::runPhase(ModuleOp module, Phase phase) {
  PassManager pm(&context);
  if (options.timing)
    pm.enableTiming();
  FailureOr<TargetDescription> target;
  if (phase != Phase::Moe && failed(target = TargetDescription::get(module)))
    return failure();
  switch (phase) {
  case Phase::Moe:
    buildMoePipeline(pm, options.pipeline);
    break;
  case Phase::Opt:
    buildOptPipeline(pm, options.pipeline);
    break;
  case Phase::Plan:
    buildPlanPipeline(pm, options.pipeline);
    break;
  case Phase::Kernel:
    target->isCUDA() ? buildCUDAKernelPipeline(pm) : buildKernelPipeline(pm);
    break;
  case Phase::Target:
    target->isCUDA() ? buildCUDATargetPipeline(pm) : buildTargetPipeline(pm);
    break;
  case Phase::Bundle:
    return success();
  }
  if (failed(runPasses(pm, module)))
    return failure();
  return dump(module, phase);
}

LogicalResult Compilation::dump(ModuleOp module, Phase phase) {
  if (options.dumpFolder.empty())
    return success();
  if (std::error_code error = llvm::sys::fs::create_directories(options.dumpFolder))
    return report(context) << options.dumpFolder << ": " << error.message();
  std::string name =
      std::to_string(static_cast<int>(phase) + 1) + "-" + getPhaseName(phase).str() + ".mlir";
  SmallString<256> path(options.dumpFolder);
  llvm::sys::path::append(path, name);
  return writeText(module, phase, path);
}

LogicalResult Compilation::writeText(ModuleOp module, Phase phase, StringRef path) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (phase == Phase::Moe)
    printWithNames(module, stream);
  else
    module.print(stream);
  text += "\n";
  if (path == "-") {
    llvm::outs() << text;
    llvm::outs().flush();
    return success();
  }
  moert::Status status = moert::writeFileAtomic(path.str(), text);
  if (!status.isOk())
    return report(context) << status.toString();
  return success();
}

LogicalResult Compilation::lower(ModuleOp module) {
  for (int phase = static_cast<int>(options.from) + 1;
       phase <= static_cast<int>(std::min(options.to, Phase::Target)); ++phase)
    if (failed(runPhase(module, static_cast<Phase>(phase))))
      return failure();
  return success();
}

LogicalResult Compilation::run() {
  if (failed(checkOptions()))
    return failure();
  FailureOr<OwningOpRef<ModuleOp>> input = readInput();
  if (failed(input))
    return failure();
  ModuleOp module = **input;
  if (options.from == Phase::Moe) {
    if (failed(runPhase(module, Phase::Moe)))
      return failure();
    if (options.to == Phase::Moe)
      return writeText(module, Phase::Moe, options.output);
    if (failed(embedReferenceText(module)))
      return failure();
    describeModel(module);
  }
  std::vector<OwningOpRef<ModuleOp>> modules;
  std::vector<BundleVariant> variants;
  for (const TargetDescription &target : targets) {
    OwningOpRef<ModuleOp> copy = module.clone();
    if (options.from == Phase::Moe)
      target.set(*copy);
    FailureOr<TargetDescription> described = TargetDescription::get(*copy);
    if (failed(described) || failed(lower(*copy)))
      return failure();
    if (options.to != Phase::Bundle)
      return writeText(*copy, options.to, options.output);
    FailureOr<std::string> code = described->isCUDA() ? compileToPTX(*copy, *described)
                                                      : compileToSharedObject(*copy, *described);
    if (failed(code) && options.from != Phase::Target)
      return report(context) << "internal error: the kernels have no machine code";
    if (failed(code))
      return failure();
    FailureOr<std::string> machineCode = std::string();
    if (described->isCUDA() && !options.ptxOnly &&
        failed(machineCode = assemblePTX(copy->getLoc(), *code, *described)))
      return failure();
    variants.push_back({*copy, *described, std::move(*code), std::move(*machineCode)});
    modules.push_back(std::move(copy));
  }
  return exportBundle(variants, {options.output, options.copyWeights});
}

} // namespace

LogicalResult mlir::moec::compile(const CompileOptions &options, MLIRContext &context) {
  return Compilation(options, context).run();
}
