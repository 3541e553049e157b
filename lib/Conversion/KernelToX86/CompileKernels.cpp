//===- CompileKernels.cpp - from the llvm dialect to machine code -----------------------------===//

#include "moec/Conversion/CompileKernels.h"

#include "LinkSharedObject.h"
#include "PartitionKernels.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/Threading.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/X86TargetParser.h"
#include "llvm/Transforms/Utils/LowerMemIntrinsics.h"

#include "runtime/abi/kernel_abi.h"

#include <mutex>

using namespace mlir;
using namespace mlir::moec;

static constexpr llvm::StringLiteral targetTriple = "x86_64-unknown-linux-gnu";

static void initializeX86() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

/// LLVM's feature string: what the description has beyond the micro-architecture, and what it
/// lacks.
static std::string getFeatureString(const TargetDescription &target) {
  SmallVector<StringRef> ofCPU;
  llvm::X86::getFeaturesForCPU(target.cpu, ofCPU);
  llvm::sort(ofCPU);
  std::string result;
  auto append = [&](const Twine &text) { result += (result.empty() ? text : "," + text).str(); };
  for (StringRef feature : ofCPU)
    if (!target.has(feature))
      append("-" + feature);
  for (StringRef feature : target.features)
    if (!llvm::is_contained(ofCPU, feature))
      append("+" + feature);
  return result;
}

static std::unique_ptr<llvm::TargetMachine> createTargetMachine(const TargetDescription &target,
                                                                std::string &error) {
  initializeX86();
  llvm::Triple triple(targetTriple);
  const llvm::Target *llvmTarget = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!llvmTarget)
    return nullptr;
  llvm::TargetOptions options;
  // A product and the sum around it may become one instruction only where the code says so.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(llvmTarget->createTargetMachine(
      triple, target.cpu, getFeatureString(target), options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Aggressive));
}

static void annotateFunctions(llvm::Module &module, const TargetDescription &target) {
  std::string features = getFeatureString(target);
  std::string width = std::to_string(target.getVectorBytes() * 8);
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", target.cpu);
    function.addFnAttr("target-features", features);
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    // The shared object has no C library: nothing may turn into a call of one.
    function.addFnAttr("no-builtins");
  }
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.LoopInterleaving = true;
  tuning.SLPVectorization = true;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  functions.registerPass([&] {
    llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
    library.disableAllFunctions();
    return llvm::TargetLibraryAnalysis(library);
  });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

/// Copies and fills that are not a few instructions become loops: there is no memcpy to call.
static void expandMemoryIntrinsics(llvm::Module &module, llvm::TargetMachine &machine) {
  constexpr uint64_t inlineBytes = 128;
  for (llvm::Function &function : module) {
    SmallVector<llvm::MemIntrinsic *> intrinsics;
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (auto *intrinsic = dyn_cast<llvm::MemIntrinsic>(&instruction)) {
          auto *length = dyn_cast<llvm::ConstantInt>(intrinsic->getLength());
          if (!length || length->getZExtValue() > inlineBytes)
            intrinsics.push_back(intrinsic);
        }
    llvm::TargetTransformInfo info = machine.getTargetTransformInfo(function);
    for (llvm::MemIntrinsic *intrinsic : intrinsics) {
      if (auto *copy = dyn_cast<llvm::MemCpyInst>(intrinsic))
        llvm::expandMemCpyAsLoop(copy, info);
      else if (auto *move = dyn_cast<llvm::MemMoveInst>(intrinsic)) {
        if (!llvm::expandMemMoveAsLoop(move, info))
          continue;
      } else if (auto *fill = dyn_cast<llvm::MemSetInst>(intrinsic))
        llvm::expandMemSetAsLoop(fill);
      else
        continue;
      intrinsic->eraseFromParent();
    }
  }
}

static LogicalResult emitObject(llvm::Module &module, llvm::TargetMachine &machine,
                                SmallVectorImpl<char> &object) {
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  llvm::TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions();
  passes.add(new llvm::TargetLibraryInfoWrapperPass(library));
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
    return failure();
  passes.run(module);
  return success();
}

namespace {
/// Some kernels on their way from LLVM IR to an object file.
struct Part {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::TargetMachine> machine;
  SmallVector<char> object;
  bool isEmitted = false;
};
} // namespace

FailureOr<std::string> mlir::moec::compileToSharedObject(ModuleOp module,
                                                         const TargetDescription &target) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);

  std::string error;
  std::vector<std::unique_ptr<Part>> parts;
  for (OwningOpRef<ModuleOp> &code : partitionKernels(module)) {
    auto part = std::make_unique<Part>();
    part->machine = createTargetMachine(target, error);
    if (!part->machine)
      return module.emitError() << "cannot make code for " << target.name << ": " << error;
    part->module = translateModuleToLLVMIR(*code, part->context, "kernels");
    if (!part->module)
      return module.emitError() << "cannot translate the kernels to LLVM IR";
    part->module->setSourceFileName("kernels");
    part->module->setTargetTriple(part->machine->getTargetTriple());
    part->module->setDataLayout(part->machine->createDataLayout());
    annotateFunctions(*part->module, target);
    parts.push_back(std::move(part));
  }

  {
    llvm::DefaultThreadPool threads(llvm::hardware_concurrency(parts.size()));
    for (std::unique_ptr<Part> &part : parts)
      threads.async([&part = *part] {
        optimize(*part.module, *part.machine);
        expandMemoryIntrinsics(*part.module, *part.machine);
        part.isEmitted = succeeded(emitObject(*part.module, *part.machine, part.object));
      });
    threads.wait();
  }

  std::vector<SmallVector<char>> objects;
  for (std::unique_ptr<Part> &part : parts) {
    if (!part->isEmitted)
      return module.emitError() << "cannot emit an object file for " << target.name;
    objects.push_back(std::move(part->object));
  }
  FailureOr<std::string> shared = linkSharedObject(objects, MOERT_KERNEL_QUERY_NAME, error);
  if (failed(shared))
    return module.emitError() << "cannot link the kernels: " << error;
  return shared;
}
