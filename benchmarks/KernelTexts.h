//===- KernelTexts.h - the kernels that benchmarks compile ------------------------------------===//

#ifndef MOEC_BENCHMARKS_KERNELTEXTS_H
#define MOEC_BENCHMARKS_KERNELTEXTS_H

#include "moec/Target/TargetDescription.h"

#include <cstdint>
#include <string>

namespace moec_bench {

/// The experts of one layer: MXFP4 weights, bf16 activations.
struct ExpertsShape {
  int64_t hidden = 2880, inter = 2880, experts = 32, topK = 4;

  int64_t countPanelBytes(int64_t rows, int64_t columns) const {
    return experts * ((rows + 15) / 16) * (columns / 32) * 272;
  }
  int64_t countGateUpBytes() const { return countPanelBytes(2 * inter, hidden); }
  int64_t countDownBytes() const { return countPanelBytes(hidden, inter); }
  /// Operations for `pairs` pairs of a token and an expert.
  double countFlops(int64_t pairs) const { return 2.0 * pairs * 3 * hidden * inter; }
};

/// Functions "gate_up" and "down" for `tokens` ("?" or digits). With `strategies` empty the best
/// ones of the target.
std::string makeExpertsText(const ExpertsShape &shape, std::string tokens, std::string strategy);

/// A function "linear": a dense bf16 weight [2 * inter, hidden] with bf16 activations, for
/// comparison with other libraries.
std::string makeLinearText(const ExpertsShape &shape, std::string tokens, std::string strategy);

/// A function "tiles" that makes `countTileFlops()` operations a workgroup on the matrix unit, for
/// targets that have one.
std::string makeTilesText();
double countTileFlops();
bool hasTiles(const mlir::moec::TargetDescription &target);

} // namespace moec_bench

#endif // MOEC_BENCHMARKS_KERNELTEXTS_H
