// Where `crema train` writes its figures beside the log: a file of JSON lines, TensorBoard's event
// files.
#pragma once

#include <fstream>
#include <memory>
#include <string>

#include "io/event_file.h"
#include "solver/solver.h"

namespace crema {

class Metrics {
 public:
  /// Opens what --metrics and --tensorboard name; without them nothing is written. A run that is
  /// resumed appends. Throws Error.
  Metrics();

  void add(const SolverEvent& event);

 private:
  std::ofstream file_;
  std::unique_ptr<EventFile> events_;
};

}  // namespace crema
