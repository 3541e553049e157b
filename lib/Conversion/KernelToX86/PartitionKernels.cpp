//===- PartitionKernels.cpp - the code of a bundle in parts
//------------------------------------===//

#include "PartitionKernels.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include "runtime/abi/kernel_abi.h"

using namespace mlir;

/// More parts than that gain little and repeat what kernels share.
static constexpr unsigned largestPartCount = 4;
static constexpr unsigned kernelsInPart = 4;

namespace {

class Partitioner {
public:
  explicit Partitioner(ModuleOp module) : module(module), symbols(module) {
    for (Operation &op : *module.getBody())
      if (isa<LLVM::LLVMDialect>(op.getDialect()))
        code.push_back(&op);
    for (Operation *op : code)
      if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
        if (isKernel(function))
          kernels.push_back(function);
  }

  SmallVector<OwningOpRef<ModuleOp>> run() {
    unsigned count = std::clamp<unsigned>(kernels.size() / kernelsInPart, 1, largestPartCount);
    SmallVector<SetVector<Operation *>> parts(count);
    SmallVector<int64_t> loads(count, 0);

    // The largest first, each to the part that has the least so far.
    SmallVector<std::pair<int64_t, LLVM::LLVMFuncOp>> sized;
    for (LLVM::LLVMFuncOp kernel : kernels)
      sized.push_back({getSize(kernel), kernel});
    llvm::stable_sort(sized, [](const auto &a, const auto &b) { return a.first > b.first; });
    for (auto [size, kernel] : sized) {
      unsigned part = std::distance(loads.begin(), llvm::min_element(loads));
      loads[part] += size;
      addWithUses(kernel, parts[part]);
    }
    // What no kernel uses: the table.
    for (Operation *op : code)
      if (llvm::none_of(parts, [&](const auto &part) { return part.contains(op); }))
        parts.front().insert(op);

    SmallVector<OwningOpRef<ModuleOp>> modules;
    for (const SetVector<Operation *> &part : parts)
      modules.push_back(build(part));
    return modules;
  }

private:
  /// Functions that the kernel table names.
  bool isKernel(LLVM::LLVMFuncOp function) {
    if (function.isExternal() || function.getName() == MOERT_KERNEL_QUERY_NAME)
      return false;
    auto uses = SymbolTable::getSymbolUses(function, module);
    return uses && llvm::any_of(*uses, [](const SymbolTable::SymbolUse &use) {
             return use.getUser()->getParentOfType<LLVM::GlobalOp>() != nullptr;
           });
  }

  void addWithUses(Operation *op, SetVector<Operation *> &part) {
    SmallVector<Operation *> worklist = {op};
    while (!worklist.empty()) {
      Operation *next = worklist.pop_back_val();
      if (!part.insert(next))
        continue;
      if (auto uses = SymbolTable::getSymbolUses(next))
        for (const SymbolTable::SymbolUse &use : *uses)
          if (Operation *used = symbols.lookup(use.getSymbolRef().getRootReference()))
            worklist.push_back(used);
    }
  }

  int64_t getSize(LLVM::LLVMFuncOp kernel) {
    SetVector<Operation *> closure;
    addWithUses(kernel, closure);
    int64_t size = 0;
    for (Operation *op : closure)
      op->walk([&](Operation *) { ++size; });
    return size;
  }

  OwningOpRef<ModuleOp> build(const SetVector<Operation *> &part) {
    OwningOpRef<ModuleOp> result = ModuleOp::create(module.getLoc());
    OpBuilder builder = OpBuilder::atBlockEnd(result->getBody());
    bool hasTable = llvm::any_of(part, [](Operation *op) {
      return SymbolTable::getSymbolName(op) == MOERT_KERNEL_QUERY_NAME;
    });
    for (Operation *op : code) {
      bool kernel = llvm::is_contained(kernels, op);
      if (!part.contains(op) && !(hasTable && kernel))
        continue;
      Operation *copy = builder.clone(*op);
      if (!kernel)
        continue;
      // Seen by the other parts, not outside of the shared object.
      auto function = cast<LLVM::LLVMFuncOp>(copy);
      function.setLinkage(LLVM::Linkage::External);
      function.setVisibility_(LLVM::Visibility::Hidden);
      if (!part.contains(op))
        function.getBody().getBlocks().clear();
    }
    return result;
  }

  ModuleOp module;
  SymbolTable symbols;
  SmallVector<Operation *> code;
  SmallVector<LLVM::LLVMFuncOp> kernels;
};

} // namespace

SmallVector<OwningOpRef<ModuleOp>> mlir::moec::partitionKernels(ModuleOp module) {
  return Partitioner(module).run();
}
