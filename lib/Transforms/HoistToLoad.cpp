//===- HoistToLoad.cpp - what depends on weights only is computed once, at load time ----------===//

#include "moec/Analysis/LoadTime.h"
#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::moec {
#define GEN_PASS_DEF_HOISTTOLOAD
#include "moec/Transforms/Passes.h.inc"

namespace {

struct HoistToLoadPass : impl::HoistToLoadBase<HoistToLoadPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> entries;
    for (auto function : module.getOps<func::FuncOp>())
      if (function->hasAttr("moe.entry"))
        entries.push_back(function);
    OpBuilder builder(module.getBodyRegion());
    builder.setInsertionPointToStart(module.getBody());
    auto load =
        func::FuncOp::create(builder, module.getLoc(), "load", builder.getFunctionType({}, {}));
    load->setAttr("moe.load", builder.getUnitAttr());
    Block *body = load.addEntryBlock();
    loadBuilder = OpBuilder::atBlockEnd(body);
    for (func::FuncOp entry : entries)
      hoist(entry);
    func::ReturnOp::create(*loadBuilder, module.getLoc());
    loadBuilder.reset();
    names.clear();
  }

private:
  /// Replaces every use, by an op that stays, of a value that is worth computing at load time.
  void hoist(func::FuncOp entry) {
    LoadTime loadTime(entry);
    IRMapping mapping;
    SmallVector<Operation *> moved;
    for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
      if (!loadTime.isLoadTime(&op))
        continue;
      if (loadTime.isWorthHoisting(&op)) {
        for (OpResult result : op.getResults())
          if (llvm::any_of(result.getUsers(),
                           [&](Operation *user) { return !loadTime.isLoadTime(user); }))
            makeGlobal(result, loadTime, mapping);
        ++hoisted;
      }
      moved.push_back(&op);
    }
    for (Operation *op : llvm::reverse(moved))
      if (op->use_empty())
        op->erase();
  }

  void makeGlobal(OpResult value, LoadTime &loadTime, IRMapping &mapping) {
    Value stored = cloneToLoad(value, mapping);
    std::string name = nameGlobal(value);
    OpBuilder builder(getOperation().getBodyRegion());
    builder.setInsertionPointToStart(getOperation().getBody());
    moe::GlobalOp::create(builder, value.getLoc(), name, value.getType());
    moe::GlobalStoreOp::create(*loadBuilder, value.getLoc(), stored, name);
    builder.setInsertionPointAfter(value.getOwner());
    auto read = moe::GlobalLoadOp::create(builder, value.getLoc(), value.getType(), name);
    value.replaceUsesWithIf(read.getResult(),
                            [&](OpOperand &use) { return !loadTime.isLoadTime(use.getOwner()); });
    ++globals;
  }

  /// Clones what makes `value` into the load function, once.
  Value cloneToLoad(Value value, IRMapping &mapping) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    op->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        if (operand.getParentRegion() == op->getParentRegion())
          cloneToLoad(operand, mapping);
    });
    loadBuilder->clone(*op, mapping);
    return mapping.lookup(value);
  }

  /// A name that says what is stored: the first weight that goes into it, and the op.
  std::string nameGlobal(Value value) {
    std::string weight = "constant";
    SmallVector<Operation *> open = {value.getDefiningOp()};
    while (!open.empty()) {
      Operation *op = open.pop_back_val();
      if (auto source = dyn_cast<moe::WeightOp>(op)) {
        weight = source.getName().str();
        break;
      }
      for (Value operand : llvm::reverse(op->getOperands()))
        if (Operation *producer = operand.getDefiningOp())
          open.push_back(producer);
    }
    std::string name = weight + "." + value.getDefiningOp()->getName().stripDialect().str();
    unsigned &count = names[name];
    return count++ == 0 ? name : name + "." + std::to_string(count);
  }

  std::optional<OpBuilder> loadBuilder;
  llvm::StringMap<unsigned> names;
};

} // namespace
} // namespace mlir::moec
