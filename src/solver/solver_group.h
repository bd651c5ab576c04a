// Several solvers that train one net together, a rank and a thread for each.
#pragma once

#include <functional>
#include <memory>

#include "solver/solver.h"

namespace crema {

struct GroupOptions {
  int ranks = 1;
  /// The device of a rank, made in the thread that uses it.
  std::function<std::shared_ptr<Ops>(int rank)> make_ops;
  /// Given each solver, in its thread, once it is built: "go". solve() where nothing is given.
  std::function<void(Solver& solver, int rank)> work = [](Solver& solver, int) { solver.solve(); };
};

/// Each rank takes batch_size records of its own; an update takes the mean of all gradients, so
/// that a step is one of a batch `ranks` times as large. Log, snapshots and options.observe are
/// rank 0's; outputs and losses are means over the ranks; batch statistics are a rank's own, their
/// running means are joined before tests and snapshots. Returns whether training was stopped early.
/// The Error of the first rank that fails ends all of them and is thrown here, with the rank's name
/// in front.
bool solve_together(const SolverParameter& param, const SolverOptions& options,
                    const GroupOptions& group);

}  // namespace crema
