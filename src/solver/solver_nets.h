// Which nets a solver trains and tests: its fields net, train_net, test_net, their inline forms and
// states, resolved.
#pragma once

#include <string>
#include <vector>

#include "crema.pb.h"
#include "io/prototxt.h"

namespace crema {

/// A net before it is built: its state is merged from, weakest first, the phase, the net's own
/// state and the solver's.
struct NetSource {
  NetParameter net;
  std::string file;    // named in errors
  std::string origin;  // as Caffe's log has it: "net file: F", "train_net_param"
  int test_iter = 0;   // batches of one test; 0 for the train net
};

/// Throws Error unless exactly one field gives the train net.
NetSource train_net_source(const SolverParameter& param, const std::string& solver_file,
                           const ReadOptions& options);

/// In Caffe's order: test_net_param, test_net, then the generic net once for each remaining
/// test_iter. Throws Error when the numbers of test_iter, test_state and nets do not agree, or
/// test_interval is missing.
std::vector<NetSource> test_net_sources(const SolverParameter& param,
                                        const std::string& solver_file, const ReadOptions& options);

}  // namespace crema
