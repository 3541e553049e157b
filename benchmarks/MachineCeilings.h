//===- MachineCeilings.h - what this machine can do at most, measured -------------------------===//

#ifndef MOEC_BENCHMARKS_MACHINECEILINGS_H
#define MOEC_BENCHMARKS_MACHINECEILINGS_H

#include "runtime/device/cpu/ThreadPool.h"

#include <functional>

namespace moec_bench {

/// Floating point operations a second of all threads, of fused multiply-adds in registers: with
/// 256-bit vectors, or with 512-bit ones where the machine has them.
double measureMultiplyAddRate(moert::ThreadPool &pool);

/// Seconds of one call: the least of several short batches within `seconds`.
double measureSeconds(const std::function<void()> &body, double seconds = 1);

/// From now on the calling thread's processor time is measured: on a machine that is busy with
/// other things, with a pool of one thread.
void useProcessorTime();

} // namespace moec_bench

#endif // MOEC_BENCHMARKS_MACHINECEILINGS_H
