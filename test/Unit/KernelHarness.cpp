//===- KernelHarness.cpp - compiles and runs kernel functions in a test -----------------------===//

#include "KernelHarness.h"

#include "BlockEmulation.h"

#include "moec/Conversion/CompileKernels.h"
#include "moec/Conversion/KernelStrategy.h"
#include "moec/Conversion/Passes.h"
#include "moec/InitDialects.h"
#include "runtime/device/cpu/CpuFeatures.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::moec;
using namespace moec_test;

bool moec_test::canRun(llvm::StringRef target) {
  std::string error;
  FailureOr<TargetDescription> description = TargetDescription::parse(target, error);
  // The runtime's own detection: asking for a matrix unit makes the system allow its use, too.
  return succeeded(description) &&
         llvm::all_of(description->features,
                      [](StringRef feature) { return moert::hasCpuFeature(feature.str()); });
}

KernelHarness::KernelHarness(llvm::StringRef text, llvm::StringRef target, HarnessOptions options)
    : options(options) {
  if (!compile(text, target))
    return;
  if (!options.emulate && !canRun(target)) {
    error = ("this machine cannot run code for " + target).str();
    return;
  }
  load();
}

KernelHarness::~KernelHarness() {
  if (library)
    dlclose(library);
  if (file >= 0)
    close(file);
}

bool KernelHarness::compile(llvm::StringRef text, llvm::StringRef target) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    llvm::raw_string_ostream stream(error);
    diagnostic.getLocation().print(stream);
    stream << ": " << diagnostic.str() << "\n";
    for (Diagnostic &note : diagnostic.getNotes())
      stream << "note: " << note.str() << "\n";
    return success();
  });

  FailureOr<TargetDescription> description = TargetDescription::parse(target, error);
  if (failed(description))
    return false;
  description->batchInvariant = options.batchInvariant;
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  if (!module)
    return false;
  description->set(*module);

  // How many threads each strategy's blocks have.
  module->walk([&](Operation *op) {
    auto name = op->getAttrOfType<StringAttr>("strategy");
    const KernelStrategy *strategy = name ? findKernelStrategy(name.getValue()) : nullptr;
    if (strategy && description->isCUDA())
      threads[op->getParentOfType<func::FuncOp>().getName().str()] =
          strategy->getThreads(op, *description);
  });

  PassManager kernelPhasePasses(&context), targetPhasePasses(&context);
  if (description->isCUDA())
    buildCUDAKernelPipeline(kernelPhasePasses);
  else
    buildKernelPipeline(kernelPhasePasses);
  if (failed(kernelPhasePasses.run(*module)))
    return false;
  llvm::raw_string_ostream(kernelPhase) << *module;

  TargetDescription machine = *description;
  if (description->isCUDA()) {
    emulateBlocks(*module);
    machine = *TargetDescription::parse("cpu", error);
    machine.set(*module);
  }
  if (options.emulate) {
    machine = *TargetDescription::parse("cpu", error);
    machine.set(*module);
    targetPhasePasses.addPass(createEmulateAMXPass());
  }
  buildTargetPipeline(targetPhasePasses);
  if (failed(targetPhasePasses.run(*module)))
    return false;
  FailureOr<std::string> shared = compileToSharedObject(*module, machine);
  if (failed(shared))
    return false;
  object = std::move(*shared);
  return true;
}

bool KernelHarness::load() {
  // Open as long as it is loaded: the loader tells libraries apart by their paths.
  file = memfd_create("moec-kernels", MFD_CLOEXEC);
  if (file < 0 || write(file, object.data(), object.size()) != ssize_t(object.size())) {
    error = "cannot write the shared object to memory";
    return false;
  }
  std::string path = "/proc/self/fd/" + std::to_string(file);
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    error = dlerror();
    return false;
  }
  auto query =
      reinterpret_cast<moert_kernel_query_function>(dlsym(library, MOERT_KERNEL_QUERY_NAME));
  if (!query) {
    error = "the shared object has no query function";
    return false;
  }
  table = query();
  return true;
}

bool KernelHarness::run(llvm::StringRef kernel, const std::vector<Binding> &bindings,
                        int64_t workgroups, size_t scratchBytes) const {
  if (!table)
    return false;
  std::vector<void *> buffers;
  std::vector<int64_t> dimensions;
  for (const Binding &binding : bindings) {
    buffers.push_back(binding.data);
    dimensions.insert(dimensions.end(), binding.dimensions.begin(), binding.dimensions.end());
  }
  scratchBytes = (scratchBytes + 63) / 64 * 64;
  void *scratch = scratchBytes ? std::aligned_alloc(64, scratchBytes) : nullptr;
  if (scratch)
    std::memset(scratch, 0xCD, scratchBytes);
  moert_kernel_arguments arguments = {buffers.data(), dimensions.data()};
  bool found = false;
  for (uint32_t i = 0; i < table->count; ++i) {
    if (kernel != table->entries[i].name)
      continue;
    found = true;
    auto block = threads.find(kernel.str());
    for (int64_t workgroup = 0; found && workgroup < workgroups; ++workgroup) {
      auto run = [&] { table->entries[i].function(&arguments, scratch, workgroup); };
      if (block == threads.end())
        run();
      else
        found = runBlock(block->second, run);
    }
  }
  std::free(scratch);
  return found;
}
