//===- LivenessPacking.h - offsets for buffers with lifetimes ---------------------------------===//
//
// Plain C++, no MLIR: buffers that are alive during intervals of commands get offsets in one arena such that two buffers that
// are alive at the same time share no byte.
//
//===------------------------------------------------------------------------------------------===//

#ifndef MOEC_ANALYSIS_LIVENESSPACKING_H
#define MOEC_ANALYSIS_LIVENESSPACKING_H

#include <cstdint>
#include <optional>
#include <vector>

namespace mlir::moec {

struct LiveBuffer {
  int64_t bytes = 0;     ///< a multiple of the alignment
  int64_t first = 0;     ///< first command that touches it
  int64_t last = 0;      ///< last command that touches it, included
  int64_t offset = -1;   ///< the result
};

/// Places the buffers one after the other, the largest first, each at the lowest offset where it fits beside those that live
/// at the same time. Returns the arena's size. Deterministic; O(n^2).
int64_t packBuffers(std::vector<LiveBuffer> &buffers);

/// The most bytes that are alive at one command: no packing can do better.
int64_t getMaximumLiveBytes(const std::vector<LiveBuffer> &buffers);

/// A pair of buffers that are alive at the same time and share bytes, if there is one.
std::optional<std::pair<size_t, size_t>> findOverlap(const std::vector<LiveBuffer> &buffers);

} // namespace mlir::moec

#endif // MOEC_ANALYSIS_LIVENESSPACKING_H
