// What the small tools share: log and flags set up, errors in one place, a stop flag for signals, a
// progress line.
#pragma once

#include <gflags/gflags.h>
#include <glog/logging.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"

namespace crema {

/// Parses the flags and calls body with what else stood on the command line. An Error's message
/// goes to stderr. Returns the exit status: what body returned, 1 for every error.
inline int run_tool(int argc, char** argv, const char* usage,
                    const std::function<int(const std::vector<std::string>&)>& body) {
  // The log goes to stderr; into files too only where GLOG_log_dir asks for them.
  (std::getenv("GLOG_log_dir") ? FLAGS_alsologtostderr : FLAGS_logtostderr) = true;
  FLAGS_log_year_in_prefix = false;
  gflags::SetUsageMessage(usage);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  google::InitGoogleLogging(argv[0]);
  try {
    return body({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

/// Prints the tool's usage and flags; returns 1.
inline int show_usage(const char* tool) {
  gflags::ShowUsageWithFlagsRestrict(gflags::GetArgv0(), (std::string("/") + tool).c_str());
  return 1;
}

inline volatile std::sig_atomic_t stop_signal = 0;

/// From now on SIGINT, SIGTERM and SIGHUP only set stop_signal; a second one ends the program.
inline void catch_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { stop_signal = signal; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

/// A line "done of total" that replaces itself, on a terminal only and a few times a second.
class ProgressLine {
 public:
  explicit ProgressLine(size_t total) : total_(total), is_terminal_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() {
    if (is_shown_) std::fprintf(stderr, "\r\x1b[K");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(size_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (!is_terminal_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    is_shown_ = true;
    std::fprintf(stderr, "\r%zu of %zu (%zu %%)\x1b[K", done, total_, 100 * done / total_);
  }

 private:
  size_t total_;
  bool is_terminal_, is_shown_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace crema
