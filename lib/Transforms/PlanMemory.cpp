//===- PlanMemory.cpp - buffers get places in arenas by their lifetimes -----------------------===//

#include "moec/Analysis/LivenessPacking.h"
#include "moec/Dialect/Plan/IR/Plan.h"
#include "moec/Transforms/Passes.h"

namespace mlir::moec {
#define GEN_PASS_DEF_PLANMEMORY
#include "moec/Transforms/Passes.h.inc"

namespace {

struct PlanMemoryPass : impl::PlanMemoryBase<PlanMemoryPass> {
  using PlanMemoryBase::PlanMemoryBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<plan::ProgramOp>())
      if (failed(place(program)))
        return signalPassFailure();
  }

private:
  LogicalResult place(plan::ProgramOp program) {
    SmallVector<Operation *> commands = program.getCommands();
    DenseMap<Operation *, int64_t> positions;
    for (auto [position, command] : llvm::enumerate(commands))
      positions[command] = position;

    // One arena for each scale.
    llvm::MapVector<AffineMap, SmallVector<plan::BufferOp>> byScale;
    for (plan::BufferOp buffer :
         llvm::make_early_inc_range(program.getBody().getOps<plan::BufferOp>())) {
      if (buffer.getBuffer().use_empty())
        buffer.erase();
      else
        byScale[buffer.getScale()].push_back(buffer);
    }
    OpBuilder builder(&getContext());
    builder.setInsertionPointToStart(&program.getBody().front());
    int64_t arena = 0;
    for (auto &[scale, members] : byScale) {
      std::vector<LiveBuffer> live;
      int64_t separate = 0;
      for (plan::BufferOp buffer : members) {
        LiveBuffer entry;
        entry.bytes = buffer.getBytes();
        if (entry.bytes % 64 != 0)
          return buffer.emitOpError() << "expects a multiple of 64 bytes, got " << entry.bytes;
        entry.first = commands.size();
        for (Operation *user : buffer.getBuffer().getUsers()) {
          entry.first = std::min(entry.first, positions.lookup(user));
          entry.last = std::max(entry.last, positions.lookup(user));
        }
        if (!reuse) {
          entry.first = 0;
          entry.last = static_cast<int64_t>(commands.size()) - 1;
        }
        if (__builtin_add_overflow(separate, entry.bytes, &separate))
          return program.emitOpError() << "needs more bytes than 64 bits can count";
        live.push_back(entry);
      }
      int64_t total = packBuffers(live);
      for (auto [buffer, entry] : llvm::zip_equal(members, live))
        buffer.setPlacementAttr(
            plan::PlacementAttr::get(&getContext(), arena, entry.offset, entry.first, entry.last));
      plan::ArenaOp::create(builder, program.getLoc(), arena, scale, total);
      buffers += members.size();
      saved += separate - total;
      ++arena;
    }
    return success();
  }
};

} // namespace
} // namespace mlir::moec
