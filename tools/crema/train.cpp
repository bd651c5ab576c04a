// crema train: a solver from its file, trained to the end or until a signal stops it.
#include <glog/logging.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "commands.h"
#include "metrics.h"
#include "solver/signals.h"
#include "solver/solver_group.h"

DEFINE_string(sigint_effect, "stop", "train: what SIGINT asks for: stop, snapshot or none");
DEFINE_string(sighup_effect, "snapshot", "train: what SIGHUP asks for: stop, snapshot or none");

namespace crema {
namespace {

/// One line on a terminal: how much time the rest takes at the present rate.
void show_time_left(const Progress& progress) {
  if (progress.iterations_per_second <= 0 || progress.iter >= progress.max_iter) return;
  const long seconds =
      std::lround((progress.max_iter - progress.iter) / progress.iterations_per_second);
  std::fprintf(stderr, "    %d of %d iterations, %ld:%02ld:%02ld left\n", progress.iter,
               progress.max_iter, seconds / 3600, seconds / 60 % 60, seconds % 60);
}

void apply_state_flags(SolverParameter& param) {
  // BVLC: without flags too the level becomes 0 and an empty stage is added.
  if (FLAGS_level != 0) param.mutable_train_state()->set_level(FLAGS_level);
  for (const std::string& stage : stages()) param.mutable_train_state()->add_stage(stage);
}

void apply_weights_flag(SolverParameter& param) {
  if (FLAGS_weights.empty() && FLAGS_snapshot.empty()) return;
  param.clear_weights();
  if (!FLAGS_weights.empty()) param.add_weights(FLAGS_weights);
}

/// What reads ahead may wait for a source that gives nothing more; a stopped run does not wait for
/// it.
void leave_if_stopped(const Solver& solver) {
  if (!solver.stopped_early()) return;
  google::FlushLogFiles(google::GLOG_INFO);
  std::fflush(nullptr);
  std::_Exit(0);
}

void solve(Solver& solver, int rank) {
  LOG_IF(INFO, rank == 0) << "Starting Optimization";
  solver.solve();
  LOG_IF(INFO, rank == 0) << "Optimization Done.";
  if (rank == 0) leave_if_stopped(solver);
}

void train(const SolverParameter& param, SolverOptions& options) {
  const std::vector<Device> devices = chosen_devices(param);
  if (devices.size() > 1) {
    const auto ranks = static_cast<int>(devices.size());
    const auto device = [&](int rank) { return make_ops(devices[static_cast<size_t>(rank)]); };
    solve_together(param, options, {.ranks = ranks, .make_ops = device, .work = solve});
    return;
  }
  options.ops = make_ops(devices[0]);
  auto solver = std::make_unique<Solver>(param, options);
  solve(*solver, 0);
}

}  // namespace

int train_command() {
  require_flag(FLAGS_solver, "train", "solver", "the solver to train");
  require(FLAGS_snapshot.empty() || FLAGS_weights.empty(),
          "--snapshot goes on with a run and --weights begins one: only one of them may be given");
  SignalHandler signals(parse_action(FLAGS_sigint_effect), parse_action(FLAGS_sighup_effect));
  SolverParameter param = read_solver(FLAGS_solver, read_options());
  apply_state_flags(param);
  apply_weights_flag(param);
  if (FLAGS_seed >= 0) param.set_random_seed(FLAGS_seed);
  const NetOptions net = net_options();
  SolverOptions options;
  options.file = FLAGS_solver;
  options.resume = FLAGS_snapshot;
  options.fuse = net.fuse;
  options.force_nchw = net.force_nchw;
  options.precision = net.precision;
  options.trace = FLAGS_trace;
  options.memory_limit = net.memory_limit;
  options.read = read_options();
  options.take_request = [&signals] { return signals.take(); };
  if (::isatty(STDERR_FILENO) != 0) options.progress = show_time_left;
  Metrics metrics;
  options.observe = [&metrics](const SolverEvent& event) { metrics.add(event); };
  train(param, options);
  return 0;
}

}  // namespace crema
