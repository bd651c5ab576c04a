// Snapshots: a weights file and a solver state PREFIX_iter_N, where they are written, and how the
// pair is found again.
#pragma once

#include <string>

#include "crema.pb.h"
#include "io/solver_state.h"
#include "net/net.h"

namespace crema {

/// Where a solver's snapshots go: snapshot_prefix; a folder gets the solver file's name without
/// extension appended; without a prefix, the solver file's path without extension.
std::string snapshot_prefix(const SolverParameter& param, const std::string& solver_file);

struct SnapshotFiles {
  std::string weights, state;
};
/// PREFIX_iter_N.caffemodel and PREFIX_iter_N.solverstate, each with ".h5" appended for HDF5.
SnapshotFiles snapshot_files(const std::string& prefix, int iter,
                             SolverParameter::SnapshotFormat format);

/// PREFIX_best.caffemodel, with ".h5" appended for HDF5: what keep_best writes.
std::string best_file(const std::string& prefix, SolverParameter::SnapshotFormat format);

/// Throws Error, naming snapshot_prefix, when no snapshot could be written there.
void require_writable_prefix(const std::string& prefix);

/// Writes the net's layers and parameters, with gradients as diff where asked for. Throws Error,
/// before anything is written, when a value is not finite; the file's old content stays on every
/// failure.
void write_net(const Net& net, const std::string& path, SolverParameter::SnapshotFormat format,
               bool with_diff);

/// The weights file that a state belongs to: as the state has it, else of that name beside the
/// state. Throws Error naming both when neither exists.
std::string find_learned_net(const SolverSnapshot& state, const std::string& state_path);

}  // namespace crema
