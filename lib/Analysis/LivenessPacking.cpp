#include "moec/Analysis/LivenessPacking.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace mlir::moec {

static bool liveTogether(const LiveBuffer &a, const LiveBuffer &b) {
  return a.first <= b.last && b.first <= a.last;
}

int64_t packBuffers(std::vector<LiveBuffer> &buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<size_t> placed; // by offset
  int64_t total = 0;
  for (size_t index : order) {
    LiveBuffer &buffer = buffers[index];
    // Walk the neighbours in time from the lowest offset up and take the first gap that is wide
    // enough.
    int64_t offset = 0;
    for (size_t other : placed) {
      const LiveBuffer &neighbour = buffers[other];
      if (!liveTogether(buffer, neighbour))
        continue;
      if (offset + buffer.bytes <= neighbour.offset)
        break;
      offset = std::max(offset, neighbour.offset + neighbour.bytes);
    }
    buffer.offset = offset;
    total = std::max(total, offset + buffer.bytes);
    auto position = std::upper_bound(placed.begin(), placed.end(), index, [&](size_t a, size_t b) {
      return buffers[a].offset < buffers[b].offset;
    });
    placed.insert(position, index);
  }
  return total;
}

int64_t getMaximumLiveBytes(const std::vector<LiveBuffer> &buffers) {
  std::map<int64_t, int64_t> changes;
  for (const LiveBuffer &buffer : buffers) {
    changes[buffer.first] += buffer.bytes;
    changes[buffer.last + 1] -= buffer.bytes;
  }
  int64_t live = 0, most = 0;
  for (auto [command, change] : changes) {
    live += change;
    most = std::max(most, live);
  }
  return most;
}

std::optional<std::pair<size_t, size_t>> findOverlap(const std::vector<LiveBuffer> &buffers) {
  for (size_t a = 0; a < buffers.size(); ++a)
    for (size_t b = a + 1; b < buffers.size(); ++b) {
      const LiveBuffer &x = buffers[a], &y = buffers[b];
      bool shareBytes = x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
      if (shareBytes && liveTogether(x, y))
        return std::make_pair(a, b);
    }
  return std::nullopt;
}

} // namespace mlir::moec
