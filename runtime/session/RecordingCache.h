// Recordings of a program's command list, one for each set of sizes and addresses that comes again.
#ifndef MOERT_SESSION_RECORDINGCACHE_H
#define MOERT_SESSION_RECORDINGCACHE_H

#include "runtime/device/Device.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace moert {

// Steps of different batch sizes alternate, and each keeps its recording; the one that was not used
// for the longest time makes room for a new one.
class RecordingCache {
public:
  static constexpr std::size_t capacity = 16;
  using Key = std::vector<std::int64_t>;

  struct Entry {
    Key key;
    std::uint64_t lastUse = 0; // 0: empty
    bool ranBefore = false;
    bool isRefused = false; // the device would not record it
    std::unique_ptr<Device::Recording> recording;
  };

  // The entry of `key`, perhaps a fresh one. Stays valid until the next call.
  Entry &find(const Key &key);
  void clear() { entries = {}; }

private:
  std::array<Entry, capacity> entries;
  std::uint64_t uses = 0;
};

} // namespace moert

#endif
