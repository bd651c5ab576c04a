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
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/str.h"

DECLARE_bool(help);
DECLARE_bool(helpshort);

namespace crema {

/// What a tool says of itself: the name of its source file, and how it is called.
struct ToolUsage {
  const char* name;
  const char* text;
};

/// Prints the tool's usage and its own flags on standard output.
inline void show_usage(const ToolUsage& tool) {
  gflags::ShowUsageWithFlagsRestrict(gflags::GetArgv0(), (std::string("/") + tool.name).c_str());
}

/// Parses the flags and calls body with what else stood on the command line: `low` to `high`
/// arguments, as they are once the flags are known. --help shows the usage; so does any other
/// number of arguments, with a line on stderr. An Error's message goes to stderr. Returns the exit
/// status: 0, and 1 for every error.
inline int run_tool(int argc, char** argv, const ToolUsage& tool,
                    const std::function<std::pair<size_t, size_t>()>& counts,
                    const std::function<void(const std::vector<std::string>&)>& body) {
  // The log goes to stderr; into files too only where GLOG_log_dir asks for them.
  (std::getenv("GLOG_log_dir") ? FLAGS_alsologtostderr : FLAGS_logtostderr) = true;
  FLAGS_log_year_in_prefix = false;
  gflags::SetUsageMessage(tool.text);
  gflags::ParseCommandLineNonHelpFlags(&argc, &argv, true);
  if (FLAGS_help || FLAGS_helpshort) {
    show_usage(tool);
    return 0;
  }
  gflags::HandleCommandLineHelpFlags();
  // A file that may not grow is an error of its write, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  google::InitGoogleLogging(argv[0]);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto [low, high] = counts();
  if (arguments.size() < low || arguments.size() > high) {
    show_usage(tool);
    std::fflush(stdout);
    const std::string wanted = low == high ? str(low) : str(low, " or ", high);
    std::fprintf(stderr, "%s: takes %s arguments beside its flags, not %zu\n", tool.name,
                 wanted.c_str(), arguments.size());
    return 1;
  }
  try {
    body(arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
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
