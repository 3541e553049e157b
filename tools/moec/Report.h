// Errors and progress on stderr, results on stdout.
#ifndef MOEC_TOOLS_MOEC_REPORT_H
#define MOEC_TOOLS_MOEC_REPORT_H

#include "tools/moec/Commands.h"

#include "runtime/base/Status.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace moec {

// Prints the error; the exit code that belongs to it.
ExitCode fail(const moert::Status &status);
// A command line that asks for something that cannot be.
ExitCode failUsage(const std::string &message);
// A file cannot be used for what was asked.
ExitCode failInput(const std::string &message);

// One line of JSON on stdout.
void printJson(const nlohmann::ordered_json &object);
// Text on stdout at once, as when tokens arrive.
void printNow(const std::string &text);

// "1.5 GiB", "12.3 ms".
std::string bytesToString(double bytes);
std::string secondsToString(double seconds);
std::string numberToString(double value, int digits);

// A bar on stderr: only on a terminal, and only once the work has taken two seconds.
class Progress {
public:
  explicit Progress(std::string label);
  ~Progress() { finish(); }
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void update(std::uint64_t done, std::uint64_t total);
  void finish(); // removes the bar

private:
  using Clock = std::chrono::steady_clock;
  std::string label;
  Clock::time_point begin, drawn;
  bool terminal;
  bool visible = false;
};

// The same for work whose length nobody knows: what is being done, and since when.
class Activity {
public:
  explicit Activity(std::string label);
  ~Activity();
  Activity(const Activity &) = delete;
  Activity &operator=(const Activity &) = delete;

private:
  void run();

  std::string label;
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  std::thread painter; // joinable on a terminal only
};

} // namespace moec

// Leaves a command with the error, if there is one. Not for coroutines of Status: the function
// returns an ExitCode.
#define MOEC_FAIL_IF_ERROR(expression)                                                             \
  do {                                                                                             \
    if (::moert::Status moecStatus = (expression); !moecStatus.isOk())                             \
      return ::moec::fail(moecStatus);                                                             \
  } while (false)

#define MOEC_ASSIGN_OR_FAIL(target, expression)                                                    \
  MOEC_ASSIGN_OR_FAIL_INNER(MOERT_CONCATENATE(moecResult, __LINE__), target, expression)
#define MOEC_ASSIGN_OR_FAIL_INNER(result, target, expression)                                      \
  auto result = (expression);                                                                      \
  if (!result.isOk())                                                                              \
    return ::moec::fail(result.status());                                                          \
  target = *std::move(result)

#endif
