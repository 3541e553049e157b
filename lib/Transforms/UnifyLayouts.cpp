//===- UnifyLayouts.cpp - weights in the layouts that strategies ask for ----------------------===//

#include "moec/Analysis/LoadTime.h"
#include "moec/Conversion/KernelStrategy.h"
#include "moec/Transforms/Passes.h"

namespace mlir::moec {
#define GEN_PASS_DEF_UNIFYLAYOUTS
#include "moec/Transforms/Passes.h.inc"

namespace {

struct UnifyLayoutsPass : impl::UnifyLayoutsBase<UnifyLayoutsPass> {
  void runOnOperation() override {
    FailureOr<TargetDescription> target = TargetDescription::get(getOperation());
    if (failed(target))
      return signalPassFailure();
    WalkResult result = getOperation().walk([&](Operation *op) {
      auto name = op->getAttrOfType<StringAttr>("strategy");
      if (!name)
        return WalkResult::advance();
      const KernelStrategy *strategy = findKernelStrategy(name);
      if (!strategy) {
        op->emitOpError() << "names the strategy \"" << name.getValue()
                          << "\", which does not exist";
        return WalkResult::interrupt();
      }
      for (OpOperand &operand : op->getOpOperands())
        if (isa<RankedTensorType, moe::BlockTensorType>(operand.get().getType()))
          if (moe::LayoutAttr layout = strategy->getLayout(op, operand, *target))
            operand.set(getWithLayout(operand.get(), layout));
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    removeUnused();
    // The new relayouts need strategies of their own.
    for (auto &[key, relayout] : relayouts)
      if (const KernelStrategy *strategy = selectKernelStrategy(relayout, *target))
        relayout->setAttr("strategy", StringAttr::get(&getContext(), strategy->getName()));
    relayouts.clear();
  }

private:
  /// `value` in `layout`: itself, the source of a relayout, a relayout that is there already, or a
  /// new one.
  Value getWithLayout(Value value, moe::LayoutAttr layout) {
    Type type = moe::withLayout(value.getType(), layout);
    if (value.getType() == type)
      return value;
    while (auto producer = value.getDefiningOp<moe::RelayoutOp>()) {
      value = producer.getSource();
      ++removed;
      if (value.getType() == type)
        return value;
    }
    moe::RelayoutOp &relayout = relayouts[{value, type}];
    if (relayout) {
      ++removed;
      return relayout.getResult();
    }
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfterValue(value);
    relayout = moe::RelayoutOp::create(builder, value.getLoc(), type, value);
    ++inserted;
    return relayout.getResult();
  }

  void removeUnused() {
    getOperation().walk([&](moe::RelayoutOp relayout) {
      if (relayout.getResult().use_empty())
        relayout.erase();
    });
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isDeclaration())
        continue;
      LoadTime loadTime(function);
      function.walk([&](moe::RelayoutOp relayout) { remaining += !loadTime.isLoadTime(relayout); });
    }
  }

  llvm::MapVector<std::pair<Value, Type>, moe::RelayoutOp> relayouts;
};

} // namespace
} // namespace mlir::moec
