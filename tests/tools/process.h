// Runs the built programs: exit status, standard output and error, with signals sent on a line of
// the log, never after a time.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/test_folder.h"

namespace crema {

struct Ended {
  int status = -1;  // exit status; 128 + N when signal N ended it
  std::string out, err;
};

/// Once standard error holds `text`, `signal` is sent; in the order of the list, each text looked
/// for after the one before.
struct SendSignal {
  std::string text;
  int signal;
};

struct RunOptions {
  std::string folder = ".";
  std::vector<std::string> environment{};  // NAME=value, added
  std::vector<SendSignal> signals{};
  bool repeat_last_signal = false;  // every 20 ms until the program ends
  long file_limit = -1;             // bytes that a file may grow to (RLIMIT_FSIZE)
};

/// Runs PROGRAM of build/bin with these arguments and waits for its end.
Ended run_program(const std::string& program, const std::vector<std::string>& arguments,
                  const RunOptions& options = {});

}  // namespace crema
