//===- VerifyPhases.cpp - each phase ends in a check of what it promises ----------------------===//

#include "moec/Analysis/LivenessPacking.h"
#include "moec/Analysis/SymbolicDims.h"
#include "moec/Conversion/KernelStrategy.h"
#include "moec/Dialect/MoE/IR/MoE.h"
#include "moec/Dialect/Plan/IR/Plan.h"
#include "moec/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::moec {
#define GEN_PASS_DEF_VERIFYMOE
#define GEN_PASS_DEF_VERIFYOPT
#define GEN_PASS_DEF_VERIFYPLAN
#include "moec/Transforms/Passes.h.inc"

namespace {

SmallVector<func::FuncOp> getEntries(ModuleOp module) {
  SmallVector<func::FuncOp> entries;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr("moe.entry"))
      entries.push_back(function);
  return entries;
}

struct VerifyMoePass : impl::VerifyMoeBase<VerifyMoePass> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> entries = getEntries(getOperation());
    if (entries.empty()) {
      getOperation().emitError()
          << "expects a function with the attribute 'moe.entry': there is nothing to run";
      return signalPassFailure();
    }
    for (func::FuncOp entry : entries) {
      if (!entry.getBody().hasOneBlock()) {
        entry.emitError() << "expects an entry of one block";
        signalPassFailure();
      } else if (failed(SymbolicDims::create(entry))) {
        signalPassFailure();
      }
    }
  }
};

struct VerifyOptPass : impl::VerifyOptBase<VerifyOptPass> {
  void runOnOperation() override {
    FailureOr<TargetDescription> target = TargetDescription::get(getOperation());
    if (failed(target))
      return signalPassFailure();
    getOperation().walk([&](Operation *op) {
      if (isa<moe::ExpertsOp>(op)) {
        op->emitOpError() << "is left in phase opt: expects it to be decomposed";
        return signalPassFailure();
      }
      auto name = op->getAttrOfType<StringAttr>("strategy");
      if (!name)
        return;
      const KernelStrategy *strategy = findKernelStrategy(name);
      if (!strategy || strategy->getOpName() != op->getName().getStringRef() ||
          !strategy->supports(op, *target)) {
        op->emitOpError() << "has strategy \"" << name.getValue() << "\", which "
                          << (strategy ? "does not support it" : "does not exist");
        signalPassFailure();
      }
    });
  }
};

struct VerifyPlanPass : impl::VerifyPlanBase<VerifyPlanPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      if (failed(check(program)))
        signalPassFailure();
  }

private:
  static LogicalResult check(plan::ProgramOp program) {
    SmallVector<Operation *> commands = program.getCommands();
    llvm::DenseMap<int64_t, plan::ArenaOp> arenas;
    for (auto arena : program.getBody().getOps<plan::ArenaOp>())
      if (!arenas.try_emplace(arena.getIndex(), arena).second)
        return arena.emitOpError() << "is declared twice";
    std::map<int64_t, std::pair<std::vector<LiveBuffer>, SmallVector<plan::BufferOp>>> placed;
    for (auto buffer : program.getBody().getOps<plan::BufferOp>()) {
      plan::PlacementAttr place = buffer.getPlacementAttr();
      if (!place)
        return buffer.emitOpError() << "has no placement";
      auto arena = arenas.find(place.getArena());
      if (arena == arenas.end())
        return buffer.emitOpError()
               << "lies in arena " << place.getArena() << ", which is not declared";
      if (arena->second.getScale() != buffer.getScale())
        return buffer.emitOpError() << "has another scale than its arena";
      int64_t end;
      if (place.getOffset() < 0 ||
          __builtin_add_overflow(place.getOffset(), buffer.getBytes(), &end) ||
          end > static_cast<int64_t>(arena->second.getBytes()))
        return buffer.emitOpError()
               << "does not lie inside its arena of " << arena->second.getBytes() << " bytes";
      for (auto [position, command] : llvm::enumerate(commands))
        if (llvm::is_contained(command->getOperands(), buffer.getBuffer()) &&
            (static_cast<int64_t>(position) < place.getFirst() ||
             static_cast<int64_t>(position) > place.getLast()))
          return buffer.emitOpError()
                 << "is used by command " << position << ", outside of its lifetime ["
                 << place.getFirst() << ", " << place.getLast() << "]";
      auto &[live, ops] = placed[place.getArena()];
      live.push_back({static_cast<int64_t>(buffer.getBytes()), place.getFirst(), place.getLast(),
                      place.getOffset()});
      ops.push_back(buffer);
    }
    for (auto &[arena, buffers] : placed)
      if (auto overlap = findOverlap(buffers.first)) {
        InFlightDiagnostic error = buffers.second[overlap->first].emitOpError()
                                   << "shares bytes of arena " << arena
                                   << " with a buffer that is alive at the same time";
        error.attachNote(buffers.second[overlap->second].getLoc()) << "the other buffer";
        return error;
      }
    return success();
  }
};

} // namespace
} // namespace mlir::moec
