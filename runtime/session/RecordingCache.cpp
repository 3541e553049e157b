#include "runtime/session/RecordingCache.h"

namespace moert {

RecordingCache::Entry &RecordingCache::find(const Key &key) {
  Entry *oldest = &entries.front();
  for (Entry &entry : entries) {
    if (entry.lastUse != 0 && entry.key == key) {
      entry.lastUse = ++uses;
      return entry;
    }
    if (entry.lastUse < oldest->lastUse)
      oldest = &entry;
  }
  *oldest = Entry();
  oldest->key = key;
  oldest->lastUse = ++uses;
  return *oldest;
}

} // namespace moert
