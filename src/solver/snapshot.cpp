// Names and contents of snapshots; the formats themselves are io's.
#include "solver/snapshot.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "io/weights.h"

namespace crema {
namespace {

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::string without_extension(const std::string& path) {
  const size_t dot = path.find_last_of('.');
  const size_t slash = path.find_last_of('/');
  const size_t name = slash == std::string::npos ? 0 : slash + 1;
  return dot == std::string::npos || dot <= name ? path : path.substr(0, dot);
}

/// The first parameter with a value that is not finite; empty when there is none.
std::string find_not_finite_param(const Net& net) {
  for (size_t i = 0; i < net.params().size(); ++i) {
    const std::vector<float> values = net.param_values(static_cast<int>(i));
    if (std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); }))
      continue;
    return str("parameter ", net.params()[i].index, " of layer \"", net.params()[i].owner, "\"");
  }
  return "";
}

}  // namespace

std::string snapshot_prefix(const SolverParameter& param, const std::string& solver_file) {
  const std::string& prefix = param.snapshot_prefix();
  if (prefix.empty()) return without_extension(solver_file);
  if (!is_directory(prefix)) return prefix;
  return str(prefix, prefix.back() == '/' ? "" : "/", file_name(without_extension(solver_file)));
}

SnapshotFiles snapshot_files(const std::string& prefix, int iter,
                             SolverParameter::SnapshotFormat format) {
  const char* extension = format == SolverParameter::HDF5 ? ".h5" : "";
  return {.weights = str(prefix, "_iter_", iter, ".caffemodel", extension),
          .state = str(prefix, "_iter_", iter, ".solverstate", extension)};
}

std::string best_file(const std::string& prefix, SolverParameter::SnapshotFormat format) {
  return prefix + "_best.caffemodel" + (format == SolverParameter::HDF5 ? ".h5" : "");
}

void require_writable_prefix(const std::string& prefix) {
  try {
    require_writable(str(prefix, "_iter_0.tempfile"));
  } catch (const Error& error) {
    fail("snapshot_prefix \"", prefix, "\": ", error.what());
  }
}

void write_net(const Net& net, const std::string& path, SolverParameter::SnapshotFormat format,
               bool with_diff) {
  const std::string broken = find_not_finite_param(net);
  require(broken.empty(), "no snapshot ", path, " is written: ", broken, " is not finite");
  const NetParameter file = net.to_proto();
  const bool hdf5 = format == SolverParameter::HDF5;
  const BlobSource blobs = [&](int layer) { return net.saved_blobs(layer, with_diff, hdf5); };
  if (hdf5) {
    write_weights_hdf5(path, file, blobs, with_diff);
  } else {
    write_weights_binary(path, file, blobs, with_diff);
  }
}

std::string find_learned_net(const SolverSnapshot& state, const std::string& state_path) {
  require(!state.learned_net.empty(), state_path, ": names no weights file (learned_net)");
  if (exists(state.learned_net)) return state.learned_net;
  // BVLC: only the path as it was written is tried, so a moved folder cannot be resumed from.
  const std::string beside = folder_of(state_path) + file_name(state.learned_net);
  require(exists(beside), state_path, ": its weights file \"", state.learned_net, "\" is not there",
          beside == state.learned_net ? "" : str(", nor is \"", beside, "\""));
  return beside;
}

}  // namespace crema
