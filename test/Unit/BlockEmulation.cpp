#include "BlockEmulation.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"

#include <memory>
#include <ucontext.h>
#include <vector>

using namespace mlir;

//===------------------------------------------------------------------------------------------===//
// Threads
//===------------------------------------------------------------------------------------------===//

namespace {

constexpr int64_t warpSize = 32;

/// Where threads wait for each other.
struct Meeting {
  int64_t arrived = 0, generation = 0;
};

class ThreadBlock {
public:
  ThreadBlock(int64_t threads, const std::function<void()> &body)
      : body(body), threads(threads), warps(llvm::divideCeil(threads, warpSize)),
        exchanged(threads) {
    for (Thread &thread : this->threads) {
      thread.stack = std::make_unique_for_overwrite<char[]>(stackBytes);
      getcontext(&thread.context);
      thread.context.uc_stack.ss_sp = thread.stack.get();
      thread.context.uc_stack.ss_size = stackBytes;
      thread.context.uc_link = &scheduler;
      makecontext(&thread.context, &ThreadBlock::enter, 0);
    }
  }

  /// Lets the threads run until all have ended, or none gets any further. Each warp in turn runs as
  /// far as it can, first to last and last to first: what a missing barrier allows does happen.
  bool run() {
    running = this;
    left = static_cast<int64_t>(threads.size());
    auto count = static_cast<int64_t>(warps.size());
    for (bool forwards = true; left > 0; forwards = !forwards) {
      bool anyProgress = false;
      for (int64_t i = 0; i < count; ++i)
        while (runWarp(forwards ? i : count - 1 - i))
          anyProgress = true;
      if (!anyProgress)
        return false;
    }
    return true;
  }

  static int32_t getThread() { return static_cast<int32_t>(running->current); }
  static void waitForBlock() {
    running->wait(running->all, static_cast<int64_t>(running->threads.size()));
  }
  static int32_t exchange(int32_t value, int32_t distance) {
    int64_t thread = running->current;
    Meeting &warp = running->warps[thread / warpSize];
    running->exchanged[thread] = value;
    running->wait(warp, warpSize);
    int32_t result = running->exchanged[thread ^ distance];
    running->wait(warp, warpSize); // before the next value takes its place
    return result;
  }

private:
  static constexpr size_t stackBytes = 64 * 1024;

  struct Thread {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool hasEnded = false;
  };

  static void enter() {
    running->body();
    running->threads[running->current].hasEnded = true;
    --running->left;
    running->hasProgressed = true;
  }

  /// Whether a thread of the warp came any further.
  bool runWarp(int64_t warp) {
    hasProgressed = false;
    int64_t end = std::min<int64_t>((warp + 1) * warpSize, threads.size());
    for (current = warp * warpSize; current < end; ++current)
      if (!threads[current].hasEnded)
        swapcontext(&scheduler, &threads[current].context);
    return hasProgressed;
  }

  void wait(Meeting &meeting, int64_t size) {
    int64_t generation = meeting.generation;
    hasProgressed = true;
    if (++meeting.arrived == size) {
      meeting.arrived = 0;
      ++meeting.generation;
    }
    while (meeting.generation == generation)
      swapcontext(&threads[current].context, &scheduler);
  }

  static ThreadBlock *running;
  std::function<void()> body;
  std::vector<Thread> threads;
  ucontext_t scheduler;
  int64_t current = 0, left = 0;
  bool hasProgressed = false;
  Meeting all;
  std::vector<Meeting> warps;
  std::vector<int32_t> exchanged;
};

ThreadBlock *ThreadBlock::running = nullptr;

} // namespace

bool moec_test::runBlock(int64_t threads, const std::function<void()> &body) {
  return ThreadBlock(threads, body).run();
}

//===------------------------------------------------------------------------------------------===//
// Code
//===------------------------------------------------------------------------------------------===//

/// Calls a function of this process, by its address.
template <typename Function>
static LLVM::CallOp buildCall(OpBuilder &builder, Location loc, Function *function, Type result,
                              ArrayRef<Type> types, ValueRange operands) {
  Value address =
      LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                               builder.getI64IntegerAttr(reinterpret_cast<intptr_t>(function)));
  SmallVector<Value> all = {LLVM::IntToPtrOp::create(
      builder, loc, LLVM::LLVMPointerType::get(builder.getContext()), address)};
  llvm::append_range(all, operands);
  return LLVM::CallOp::create(builder, loc, LLVM::LLVMFunctionType::get(result, types), all);
}

static void replace(Operation *op) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Type i32 = builder.getI32Type();
  if (isa<NVVM::ThreadIdXOp>(op)) {
    op->replaceAllUsesWith(buildCall(builder, loc, &ThreadBlock::getThread, i32, {}, {}));
  } else if (isa<NVVM::Barrier0Op>(op)) {
    buildCall(builder, loc, &ThreadBlock::waitForBlock, LLVM::LLVMVoidType::get(op->getContext()),
              {}, {});
  } else if (auto shuffle = dyn_cast<NVVM::ShflOp>(op)) {
    Type type = shuffle.getType();
    Value bits = LLVM::BitcastOp::create(builder, loc, i32, shuffle.getVal());
    Value other = buildCall(builder, loc, &ThreadBlock::exchange, i32, {i32, i32},
                            {bits, shuffle.getOffset()})
                      .getResult();
    op->replaceAllUsesWith(LLVM::BitcastOp::create(builder, loc, type, other));
  } else if (auto cast = dyn_cast<memref::MemorySpaceCastOp>(op)) {
    op->replaceAllUsesWith(ValueRange(cast.getSource()));
  } else {
    return;
  }
  op->erase();
}

void moec_test::emulateBlocks(ModuleOp module) {
  AttrTypeReplacer spaces;
  spaces.addReplacement([](MemRefType type) -> Type {
    return MemRefType::get(type.getShape(), type.getElementType(), type.getLayout());
  });
  spaces.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                      /*replaceTypes=*/true);
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops)
    replace(op);
}
