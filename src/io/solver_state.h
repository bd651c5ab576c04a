// Solver states: .solverstate (binary SolverState) and .solverstate.h5, with fields of our own that
// Caffe skips and that its files lack.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/blob.h"

namespace crema {

/// How many records a data layer has handed out. net: 0 the train net, i the i-th test net.
struct RecordCursor {
  int net = 0;
  std::string layer;
  uint64_t record = 0;
};

/// Where keep_best stands.
struct BestScore {
  float score = 0;
  int iter = 0;
  int tests_since = 0;
};

/// What a run needs to go on, beside its weights.
struct SolverSnapshot {
  int iter = 0;
  int current_step = 0;
  /// The weights file that belongs to it, as it was written.
  std::string learned_net;
  /// One blob, or several groups of them (as the update rule has it), for each learnable parameter.
  std::vector<HostBlob> history;
  // Absent (empty) in files that Crema did not write:
  std::optional<uint64_t> seed;
  std::optional<uint64_t> forward_count;
  std::optional<float> loss_scale;
  int loss_scale_steps = 0;  // since it last changed
  std::vector<RecordCursor> cursors;
  std::vector<uint64_t> test_forward_counts;
  std::optional<BestScore> best;
};

/// Reads either format, told from the content. Throws Error "PATH: ..." for a file that is missing,
/// empty, truncated or of another kind (a weights file, for one).
SolverSnapshot read_solver_state(const std::string& path);

/// On failure both throw Error and path keeps its old content.
void write_solver_state_binary(const std::string& path, const SolverSnapshot& state);
void write_solver_state_hdf5(const std::string& path, const SolverSnapshot& state);

}  // namespace crema
