//===- BlockCode.h - code that the threads of a block run together ----------------------------===//
//
// A workgroup of a GPU kernel is a block of threads. Its code is what every thread runs; threads
// differ by their number, meet at barriers, share memory, and exchange values within a warp.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_BLOCKCODE_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_BLOCKCODE_H

#include "../CodeBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::moec {

class BlockCode : public CodeBuilder {
public:
  static constexpr int64_t warpSize = 32;

  /// Builds at `builder`'s insertion point, inside a kernel function. `threads` of a block is a
  /// multiple of the warp size.
  BlockCode(Location loc, OpBuilder &builder, int64_t threads);

  int64_t getThreads() const { return threads; }
  int64_t getWarps() const { return threads / warpSize; }

  /// The number of this thread, of its warp, and its place in the warp.
  Value thread() const { return threadId; }
  Value warp() { return divide(threadId, warpSize); }
  Value lane() { return remainder(threadId, warpSize); }
  using CodeBuilder::lane;

  /// Waits for all threads of the block; what they wrote before is visible afterwards.
  void barrier();

  /// Memory that the block's threads share, undefined at first.
  Value allocateShared(ArrayRef<int64_t> shape, Type element);
  /// Numbers that never change, in the GPU's memory.
  Value constantTable(ArrayRef<float> values);

  /// Sum and maximum over `lanes` neighbouring lanes (a power of two), the same bits in each of
  /// them. Every thread of the warp takes part.
  Value sumOverLanes(Value value, int64_t lanes = warpSize);
  Value maximumOverLanes(Value value, int64_t lanes = warpSize);

  /// Calls `body` for the indices from this thread's on, a block apart, below `count`.
  void forEachOfThread(Value count, function_ref<void(Value)> body) {
    loop(threadId, count, threads, body);
  }

private:
  Value exchange(Value value, int64_t distance);

  int64_t threads;
  func::FuncOp kernel;
  Value threadId;
};

/// The number of this thread in its block, as an index.
Value buildThreadId(OpBuilder &builder, Location loc);
/// Memory shared by the threads of the block that runs `kernel`: a memref of the default space.
Value buildSharedMemory(OpBuilder &builder, Location loc, func::FuncOp kernel, MemRefType type);
/// Waits for all threads of the block.
void buildBarrier(OpBuilder &builder, Location loc);
/// The value of the lane whose number differs by the bit `distance`; f32 or i32.
Value buildExchange(OpBuilder &builder, Location loc, Value value, int64_t distance);

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_BLOCKCODE_H
