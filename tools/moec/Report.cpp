#include "tools/moec/Report.h"

#include <cinttypes>
#include <cstdio>
#include <unistd.h>

namespace moec {

static void printError(const std::string &text) {
  std::fflush(stdout);
  std::fprintf(stderr, "moec: %s\n", text.c_str());
}

ExitCode fail(const moert::Status &status) {
  printError(status.toString());
  return status.code() == moert::ErrorCode::Internal ? ExitCode::Internal : ExitCode::Input;
}

ExitCode failUsage(const std::string &message) {
  printError("error: " + message + "\nRun the command with --help for its options.");
  return ExitCode::Usage;
}

ExitCode failInput(const std::string &message) {
  printError("error: " + message);
  return ExitCode::Input;
}

void printJson(const nlohmann::ordered_json &object) {
  std::string text =
      object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  printNow(text);
}

void printNow(const std::string &text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

std::string numberToString(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string bytesToString(double bytes) {
  const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  return numberToString(bytes, unit == 0 ? 0 : 1) + " " + units[unit];
}

std::string secondsToString(double seconds) {
  if (seconds >= 1)
    return numberToString(seconds, 2) + " s";
  if (seconds >= 1e-3)
    return numberToString(seconds * 1e3, 2) + " ms";
  return numberToString(seconds * 1e6, 1) + " us";
}

Progress::Progress(std::string label)
    : label(std::move(label)), begin(Clock::now()), drawn(begin), terminal(isatty(STDERR_FILENO)) {}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  if (!terminal)
    return;
  Clock::time_point now = Clock::now();
  if (now - begin < std::chrono::seconds(2) || now - drawn < std::chrono::milliseconds(100))
    return;
  drawn = now;
  visible = true;
  double share = total == 0 ? 0 : double(done) / double(total);
  constexpr int width = 30;
  int full = static_cast<int>(share * width);
  std::string bar(full > width ? width : full, '#');
  bar.resize(width, '.');
  std::fprintf(stderr, "\r%s [%s] %3d %%", label.c_str(), bar.c_str(),
               static_cast<int>(share * 100));
  std::fflush(stderr);
}

void Progress::finish() {
  if (!visible)
    return;
  visible = false;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
}

Activity::Activity(std::string label) : label(std::move(label)) {
  if (isatty(STDERR_FILENO))
    painter = std::thread([this] { run(); });
}

void Activity::run() {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  std::unique_lock lock(mutex);
  auto wait = std::chrono::seconds(2);
  bool visible = false;
  while (!changed.wait_for(lock, wait, [this] { return over; })) {
    wait = std::chrono::seconds(1);
    visible = true;
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
    std::fprintf(stderr, "\r%s: %lld s", label.c_str(), static_cast<long long>(seconds));
    std::fflush(stderr);
  }
  if (visible)
    std::fprintf(stderr, "\r\033[K");
}

Activity::~Activity() {
  {
    std::lock_guard lock(mutex);
    over = true;
  }
  changed.notify_all();
  if (painter.joinable())
    painter.join();
}

} // namespace moec
