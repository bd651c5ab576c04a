// What SIGINT and SIGHUP ask of a training run. Handlers only set flags; the loop takes them
// between iterations.
#pragma once

#include <cstdint>
#include <string>

namespace crema {

enum class SolverAction : uint8_t { none, stop, snapshot };

struct SolverRequest {
  bool stop = false, snapshot = false;
};

/// "stop", "snapshot" or "none". Throws Error with the nearest of them.
SolverAction parse_action(const std::string& name);

/// While it lives, SIGINT and SIGHUP are caught; afterwards they do what they did before. One at a
/// time. A second SIGINT whose effect is stop ends the process, since the first was not heard.
class SignalHandler {
 public:
  SignalHandler(SolverAction on_interrupt, SolverAction on_hangup);
  ~SignalHandler();
  SignalHandler(const SignalHandler&) = delete;
  SignalHandler& operator=(const SignalHandler&) = delete;

  /// What the signals since the last call ask for.
  SolverRequest take();

 private:
  SolverAction on_interrupt_, on_hangup_;
};

}  // namespace crema
