//===- HopperCode.h - the instructions that Hopper GPUs alone have ----------------------------===//
//
// Bulk tensor copies, barriers in shared memory that count bytes, products of warpgroups, registers
// that move between warpgroups: one short method each.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_HOPPERCODE_H
#define MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_HOPPERCODE_H

#include "../BlockCode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::moec {

/// Whether a tensor is a buffer of its own when kernels run. A slice of a larger one is not: its rows
/// are further apart than they are long, and begin at any address.
bool isWholeBuffer(Value tensor);

/// Whether each row of the matrix, which may be columns of a wider one, begins at a multiple of 16
/// bytes, as copies in pieces want it.
bool hasAlignedRows(Value tensor);

class HopperCode : public BlockCode {
public:
  static constexpr int64_t warpgroupSize = 128;

  HopperCode(Location loc, OpBuilder &builder, int64_t threads);

  /// The thread's number as i32, and those of its warpgroup and warp: the same value in all lanes,
  /// and known to be, so that branches and addresses that depend on them are computed once a warp.
  Value threadNumber() const { return number; }
  Value warpgroupNumber() const { return warpgroup; }
  Value warpInWarpgroup() const { return warpOfGroup; }
  Value laneNumber() { return andBits(number, warpSize - 1); }

  // i32 arithmetic with constants.
  Value plus(Value a, int64_t b) { return b == 0 ? a : add(a, int32(b)); }
  Value times(Value a, int64_t b) { return b == 1 ? a : mul(a, int32(b)); }
  Value andBits(Value a, int64_t mask);
  Value exclusiveOr(Value a, Value b);
  Value shiftedRight(Value a, int64_t bits);
  Value isEqual(Value a, int64_t b) {
    return compare(arith::CmpIPredicate::eq, a, int32(b));
  }

  /// The dynamic shared memory of the block, aligned to 1024 bytes, from byte `offset` (i32) on.
  Value dynamicShared(Value offset);
  /// Barriers in the block's own shared memory, as a pointer to i64.
  Value allocateBarriers(int64_t count);
  /// The address of such a pointer, as i32.
  Value toAddress(Value pointer);

  /// The address `byte` (index) bytes behind the beginning of a buffer in the GPU's memory.
  Value globalPointer(Value memref, Value byte);
  /// The address `bytes` (i32) behind a pointer.
  Value offsetPointer(Value pointer, Value bytes);
  /// Stores neighbouring f32 values, one or two, as `element` if `a < b` (i32).
  void storeWhenLess(Value a, Value b, Value pointer, ArrayRef<Value> values, Type element);

  /// One thread of the warp: true for it alone.
  Value electOne();
  void decreaseRegisters(int64_t count);
  void increaseRegisters(int64_t count);
  /// Waits for the `count` threads that use the barrier `id` (1 to 15).
  void namedBarrier(Value id, int64_t count);
  void namedBarrier(int64_t id, int64_t count) { namedBarrier(int32(id), count); }

  /// Blocks of the launch form clusters of so many neighbours; a launch has a multiple of that.
  void setClusterSize(int64_t blocks);
  /// The number of this block in its cluster, as i32.
  Value blockInCluster();
  /// What lies in that block's shared memory where `pointer` points to in this block's own.
  Value inBlock(Value pointer, Value block);
  /// All threads of a cluster arrive before one that waits goes on; those that ended do not count. What
  /// they wrote before is visible then.
  void arriveAtCluster();
  void waitForCluster();
  /// `pointer` and a constant number of bytes.
  Value behind(Value pointer, int64_t bytes);

  /// A description of `binding` for the copy engine: boxes of `box` elements (innermost first),
  /// laid out in shared memory with a swizzle of 128 bytes.
  Value tensorMap(Value binding, ArrayRef<int64_t> box);
  /// Copies the box at `coordinates` (i32, innermost first) to shared memory; its bytes arrive at
  /// `barrier`. What lies outside of the tensor arrives as zeros.
  void loadBox(Value destination, Value map, Value barrier, ValueRange coordinates);
  /// Copies `bytes` (i32, a multiple of 16) to shared memory; they arrive at `barrier`.
  void loadBytes(Value destination, Value source, Value barrier, Value bytes);
  /// Begins to copy 16 bytes to shared memory, zeros behind the first `size` (i32).
  void copyPiece(Value destination, Value source, Value size);
  /// What this thread wrote to shared memory is seen by copies in bulk and products of warpgroups.
  void fenceAsyncProxy();
  /// The same for both blocks of a cluster of two: into the shared memory of each, where its barrier is
  /// that of the same place.
  void loadBoxToPair(Value destination, Value map, Value barrier, ValueRange coordinates);
  /// Copies a box the other way; what lies outside of the tensor is left out. The thread that stores
  /// commits and waits.
  void storeBox(Value source, Value map, ValueRange coordinates);
  void commitStores();
  /// Waits until all committed stores have read shared memory.
  void waitForStores();

  /// Stores four 8 x 8 matrices of 16-bit values from a warp's registers to shared memory: a lane
  /// gives the address of row lane % 8 of matrix lane / 8 and a word of each, as sums of a warpgroup's
  /// product have them.
  void storeMatrices(Value address, ValueRange words);
  /// A pair of f32 as one word of two `element`s.
  Value roundPair(Value pair, Type element);

  /// Two neighbours in memory, the first at an even place: one access, f32 in registers.
  Value loadPair(Value memref, ValueRange indices);
  void storePair(Value pair, Value memref, ValueRange indices);

private:
  Value number, warpgroup, warpOfGroup, shared;
};

/// A ring of slots in shared memory between warps that fill and warps that use them. Where it
/// stands is a slot (i32) and a parity (i32), which loops carry along.
class SlotRing {
public:
  struct Position {
    Value slot, parity;
  };

  /// A slot is full when `fillers` arrived and all announced bytes, empty when `users` did.
  SlotRing(HopperCode &code, int64_t slots, int64_t fillers, int64_t users);
  /// The same barriers for a ring of fewer slots: one of the two is used.
  SlotRing(const SlotRing &ring, int64_t slots);

  /// Uses the first `count` (i32) slots only; the same in all threads.
  void limit(Value count) { used = count; }

  /// By one thread, before the block's first barrier.
  void initialize() { initialize(code.int32(users)); }
  /// With a number of users that only the launch knows.
  void initialize(Value users);
  Position start();
  Position next(Position position);

  void waitFull(Position position);
  void waitEmpty(Position position);
  /// The barrier that bytes of the slot arrive at; says how many will.
  Value announce(Position position, Value bytes);
  /// A filler that announces no bytes has done its part of a slot.
  void fill(Value slot);
  void release(Value slot);
  /// The same slot of the other block in a cluster of two.
  void releaseOfPair(Value slot);
  Value previous(Value slot);

private:
  Value getBarrier(Value index);
  void wait(Value barrier, Value parity);

  HopperCode &code;
  int64_t slots, fillers, users, firstEmpty;
  Value barriers, used;
};

/// Sums of a warpgroup's product of 64 rows and `columns` columns, in registers.
class WarpgroupProduct {
public:
  WarpgroupProduct(HopperCode &code, Type element, int64_t columns)
      : code(code), element(element), columns(columns) {}

  int64_t getRegisters() const { return columns / 2; }
  Type getSumsType();
  Value zeros();

  /// Adds the product of 64 rows of 64 elements at `left` and `columns` such rows at `right` (i32
  /// addresses in shared memory, swizzled as loadBox leaves them). Runs on its own until waited for.
  Value multiply(Value sums, Value left, Value right);
  void fence();
  void commit();
  /// Waits until at most `pending` commits still run.
  void wait(int64_t pending);

  /// A thread has results in two rows (`half` 0 and 1): which of the 64 they are.
  Value getRow(int64_t half);
  /// Calls `body` for each pair of neighbours in that row: the first one's column, and both values.
  void forEachPair(Value sums, int64_t half,
                   function_ref<void(Value column, Value first, Value second)> body);
  int64_t getColumns() const { return columns; }
  Value getRegister(Value sums, int64_t i);
  /// Pair `i` of the sums that a thread has: those of both halves for each eight columns in turn.
  Value getPair(Value sums, int64_t i);
  Value fromRegisters(ArrayRef<Value> registers);

private:
  Value describe(Value address);

  HopperCode &code;
  Type element;
  int64_t columns;
};

} // namespace mlir::moec

#endif // MOEC_LIB_CONVERSION_MOETOKERNELS_CUDA_HOPPER_HOPPERCODE_H
