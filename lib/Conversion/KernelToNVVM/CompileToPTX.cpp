//===- CompileToPTX.cpp - from the llvm and nvvm dialects to PTX ------------------------------===//

#include "moec/Conversion/CompileKernels.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;
using namespace mlir::moec;

static constexpr llvm::StringLiteral targetTriple = "nvptx64-nvidia-cuda";

static std::unique_ptr<llvm::TargetMachine> createTargetMachine(const TargetDescription &target,
                                                                std::string &error) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple(targetTriple);
  const llvm::Target *llvmTarget = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!llvmTarget)
    return nullptr;
  llvm::TargetOptions options;
  // A product and the sum around it may become one instruction only where the code says so.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(
      llvmTarget->createTargetMachine(triple, target.cpu, getPTXVersion(target), options,
                                      std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

/// Loads from what nothing else points to and nobody writes would become loads of constants, which
/// ptxas moves wherever it likes: also before a kernel has waited for the one that it overlaps with,
/// and that one may still be writing there.
static void keepLoadsInPlace(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (function.getCallingConv() == llvm::CallingConv::PTX_Kernel)
      for (llvm::Argument &argument : function.args())
        argument.removeAttr(llvm::Attribute::NoAlias);
}

/// The oldest PTX that has the instructions of the GPU: more drivers accept it. PTX 8.6 has the
/// tensor copies to a single block's shared memory.
static unsigned getPTXVersionNumber(const TargetDescription &target) {
  if (target.isArchitectureSpecific() || target.computeCapability >= 100)
    return 86;
  return target.computeCapability >= 89 ? 80 : 78;
}

std::string mlir::moec::getPTXVersion(const TargetDescription &target) {
  return "+ptx" + std::to_string(getPTXVersionNumber(target));
}

/// As cuDriverGetVersion counts; from the table of PTX versions in NVIDIA's PTX ISA manual.
unsigned mlir::moec::getDriverVersion(const TargetDescription &target) {
  switch (getPTXVersionNumber(target)) {
  case 86:
    return 12070;
  case 80:
    return 12000;
  default:
    return 11080;
  }
}

FailureOr<std::string> mlir::moec::compileToPTX(ModuleOp module, const TargetDescription &target) {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  module.getContext()->appendDialectRegistry(registry);

  std::string error;
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(target, error);
  if (!machine)
    return module.emitError() << "cannot make code for " << target.name << ": " << error;
  // Functions and globals alone: the program beside them is no code.
  OwningOpRef<ModuleOp> code = ModuleOp::create(module.getLoc());
  OpBuilder builder(code->getBodyRegion());
  for (Operation &op : *module.getBody())
    if (isa<LLVM::LLVMFuncOp, LLVM::GlobalOp>(op))
      builder.clone(op);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule = translateModuleToLLVMIR(*code, context, "kernels");
  if (!llvmModule)
    return module.emitError() << "cannot translate the kernels to LLVM IR";
  llvmModule->setTargetTriple(machine->getTargetTriple());
  llvmModule->setDataLayout(machine->createDataLayout());
  optimize(*llvmModule, *machine);
  keepLoadsInPlace(*llvmModule);

  SmallVector<char> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return module.emitError() << "cannot emit PTX for " << target.name;
  passes.run(*llvmModule);
  return std::string(text.begin(), text.end());
}
