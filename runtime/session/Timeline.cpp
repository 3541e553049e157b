#include "runtime/session/Timeline.h"

#include <nlohmann/json.hpp>

namespace moert {

std::string Timeline::toJson(const std::string &device) const {
  using Json = nlohmann::ordered_json;
  constexpr int programs = 1, launches = 2;
  Json events = Json::array();
  auto name = [&](const char *what, int thread, const std::string &text) {
    events.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", thread}, {"args", {{"name", text}}}});
  };
  name("process_name", programs, device);
  name("thread_name", programs, "programs");
  name("thread_name", launches, "launches");
  for (const Event &event : list) {
    bool isProgram = event.kernel.empty();
    Json one = {{"name", event.name.empty() ? event.kernel : event.name},
                {"ph", "X"},
                {"pid", 1},
                {"tid", isProgram ? programs : launches},
                {"ts", event.begin * 1e6}, // microseconds
                {"dur", event.seconds * 1e6}};
    if (!isProgram)
      one["args"] = {{"kernel", event.kernel},
                     {"workgroups", event.workgroups},
                     {"flops", event.flops},
                     {"bytes", event.bytesMoved}};
    events.push_back(std::move(one));
  }
  Json result = {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}};
  return result.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace moert
