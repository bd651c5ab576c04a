// Starts a built program, feeds it signals, and gives back its status and output.
#include "tools/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace crema {
namespace {

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() { require(::pipe2(ends.data(), O_CLOEXEC) == 0, errno_text()); }
};

[[noreturn]] void become(const std::string& path, const std::vector<std::string>& arguments,
                         const RunOptions& options, const Pipe& out, const Pipe& err) {
  ::dup2(out.ends[1], STDOUT_FILENO);
  ::dup2(err.ends[1], STDERR_FILENO);
  if (::chdir(options.folder.c_str()) != 0) ::_exit(126);
  for (const std::string& variable : options.environment)
    ::putenv(const_cast<char*>(variable.c_str()));
  if (options.file_limit >= 0) {
    const auto limit = static_cast<rlim_t>(options.file_limit);
    const rlimit limits{limit, limit};
    ::setrlimit(RLIMIT_FSIZE, &limits);
  }
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
  ::_exit(127);
}

/// Reads both streams to their ends; sends signals as their texts appear.
void follow(pid_t child, std::array<pollfd, 2> streams, const RunOptions& options, Ended& ended) {
  std::array<std::string*, 2> texts{&ended.out, &ended.err};
  size_t sent = 0, from = 0;
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    const bool repeats = options.repeat_last_signal && sent > 0 && sent == options.signals.size();
    if (::poll(streams.data(), 2, repeats ? 20 : -1) == 0)
      ::kill(child, options.signals.back().signal);
    for (size_t i = 0; i < 2; ++i) {
      if (streams[i].fd < 0 || streams[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t n = ::read(streams[i].fd, buffer, sizeof buffer);
      if (n > 0) texts[i]->append(buffer, static_cast<size_t>(n));
      if (n == 0) streams[i].fd = -1;
    }
    while (sent < options.signals.size()) {
      const size_t found = ended.err.find(options.signals[sent].text, from);
      if (found == std::string::npos) break;
      from = found + options.signals[sent].text.size();
      ::kill(child, options.signals[sent++].signal);
    }
  }
}

}  // namespace

Ended run_program(const std::string& program, const std::vector<std::string>& arguments,
                  const RunOptions& options) {
  const std::string path = std::string(CREMA_BIN_DIR) + "/" + program;
  require(exists(path), path, " is not built");
  Ended ended;
  const Pipe out, err;
  const pid_t child = ::fork();
  require(child >= 0, errno_text());
  if (child == 0) become(path, arguments, options, out, err);
  ::close(out.ends[1]);
  ::close(err.ends[1]);
  follow(child, {pollfd{out.ends[0], POLLIN, 0}, pollfd{err.ends[0], POLLIN, 0}}, options, ended);
  ::close(out.ends[0]);
  ::close(err.ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

}  // namespace crema
