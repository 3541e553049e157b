//===- BlockEmulation.h - the threads of a GPU's block on a CPU -------------------------------===//
//
// Kernels for GPUs, as phase kernel leaves them, are what one thread of a block runs. Here a
// block's threads are fibers of one thread of the CPU: each runs until it waits for others, at a
// barrier or to exchange a value within its warp.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_TEST_UNIT_BLOCKEMULATION_H
#define MOEC_TEST_UNIT_BLOCKEMULATION_H

#include "mlir/IR/BuiltinOps.h"

#include <functional>

namespace moec_test {

/// Replaces thread numbers, barriers and exchanges of `module` by calls into this process, and
/// shared memory by memory of the module: blocks must run one after the other.
void emulateBlocks(mlir::ModuleOp module);

/// Runs `body` once for each thread of a block. False when its threads wait for each other forever:
/// for a barrier that some do not come to.
bool runBlock(int64_t threads, const std::function<void()> &body);

} // namespace moec_test

#endif // MOEC_TEST_UNIT_BLOCKEMULATION_H
