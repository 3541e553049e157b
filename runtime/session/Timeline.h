// When each launch of some programs ran: for people who look at it in Perfetto or chrome://tracing.
#ifndef MOERT_SESSION_TIMELINE_H
#define MOERT_SESSION_TIMELINE_H

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace moert {

class Timeline {
public:
  struct Event {
    std::string name;   // which ops of the model
    std::string kernel; // empty: a whole program
    double begin = 0;   // in seconds since the timeline began
    double seconds = 0;
    std::uint64_t workgroups = 0;
    double flops = 0;
    double bytesMoved = 0;
  };

  // Seconds since the timeline began.
  double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  void add(Event event) { list.push_back(std::move(event)); }
  const std::vector<Event> &events() const { return list; }

  // In Chrome's trace event format. `device` is the name of the track.
  std::string toJson(const std::string &device) const;

private:
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::vector<Event> list;
};

} // namespace moert

#endif
