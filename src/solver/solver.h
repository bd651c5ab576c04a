// The training loop: forward, backward, update, display, test, snapshot, in Caffe's order. A solver
// knows parameters and never layer types.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/trace.h"
#include "crema.pb.h"
#include "io/prototxt.h"
#include "io/solver_state.h"
#include "net/net.h"
#include "parallel/communicator.h"
#include "solver/detection_score.h"
#include "solver/learning_rate.h"
#include "solver/signals.h"
#include "solver/solver_nets.h"
#include "solver/updater.h"

namespace crema {

/// How far a run is, at each display.
struct Progress {
  int iter = 0, max_iter = 0;
  double iterations_per_second = 0;  // since the last display; 0 at the first
};

/// The figures of one display or one test.
struct SolverEvent {
  int iter = 0;
  int test_net = -1;           // -1: of the train net
  double seconds = 0;          // since the solver was made
  std::optional<double> loss;  // as displayed; of tests only with test_compute_loss
  std::optional<float> rate;   // of this iteration's update
  std::vector<std::pair<std::string, std::vector<double>>> outputs;  // by name, as displayed
};

struct SolverOptions {
  std::string file = "solver";  // the solver's path: for errors and the snapshot prefix
  std::shared_ptr<Ops> ops;
  /// The ranks that train one net together, each a solver in a thread of its own (see
  /// solver_group.h); nullptr: this one alone.
  std::shared_ptr<Communicator> group;
  std::string resume;  // a solver state to go on from; the solver's weights are not loaded then
  bool fuse = true, force_nchw = false;
  std::optional<DType> precision;  // of the nets' blobs; nothing: as their fields say
  size_t memory_limit = 0;         // of the train net with its histories, in bytes; 0: the device's
  bool overlap_sums = true;        // gradients are summed over ranks while backward runs
  size_t bucket_bytes = size_t{8} << 20;  // in parts of at least this size
  std::string trace;                      // a file for the trace of one iteration; empty: none
  ReadOptions read;                       // of net files
  std::function<SolverRequest()> take_request = [] { return SolverRequest{}; };
  std::function<void(const Progress&)> progress = [](const Progress&) {};
  std::function<void(const SolverEvent&)> observe = [](const SolverEvent&) {};
};

class Solver {
 public:
  /// Checks the fields, builds train and test nets, loads weights or the state. Everything that can
  /// be found wrong is found here: a file or field that is wrong, a prefix that cannot be written.
  /// Throws Error.
  Solver(const SolverParameter& param, const SolverOptions& options);
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  /// Trains to max_iter, snapshots, shows the last loss and tests, as the fields say. Returns early
  /// when told to stop. Throws Error when the loss is not finite, and leaves the files as they are
  /// then.
  void solve();
  /// At most this many iterations; the window of the displayed loss starts anew.
  void step(int iterations);
  /// One test of every test net, logged.
  void test_all();
  /// Writes weights and state; returns the state's path. Of several ranks rank 0 writes, and all of
  /// them must call it. Throws Error; old files stay whole then.
  /// In the middle of tests the state has the test nets as they were before, since a resumed run
  /// tests again.
  std::string snapshot();

  int iter() const { return iter_; }
  Net& net() { return *net_; }
  Net& test_net(int index) { return *tests_[static_cast<size_t>(index)].net; }
  int test_net_count() const { return static_cast<int>(tests_.size()); }
  /// Mean outputs of the last test, in the order of that net's outputs().
  const std::vector<std::vector<double>>& test_scores(int index) const {
    return tests_[static_cast<size_t>(index)].scores;
  }
  const Updater& updater() const { return *updater_; }
  uint64_t seed() const { return seed_; }
  const LossScale& loss_scale() const { return *loss_scale_; }
  /// The loss as displayed: the mean of the last average_loss iterations.
  double smoothed_loss() const;
  bool stopped_early() const { return stop_; }

 private:
  /// Where a test net stands.
  struct Position {
    uint64_t forward_count = 0;
    std::vector<std::pair<std::string, uint64_t>> cursors;
  };
  struct TestNet {
    std::unique_ptr<Net> net;
    int iterations;  // over all ranks
    int ranks = 1;   // that share them
    std::vector<std::vector<double>> scores;
    std::map<size_t, DetectionScore> detections;  // by output: those of DetectionEvaluate
    std::optional<Position> began;                // while tests run, and after they were broken off
    Position now() const { return {net->forward_count(), net->cursors()}; }
  };

  void check_fields() const;
  void start(const std::optional<SolverSnapshot>& state);
  void build_nets();
  void use_loss_scale();
  NetOptions net_options(const NetSource& source, Phase phase) const;
  void restore_history(const SolverSnapshot& state);
  void restore_place(const SolverSnapshot& state);
  void restore_cursors(const SolverSnapshot& state);
  void derive_cursors();
  int tests_before(int iter) const;

  void iterate();
  float forward_backward(bool display);
  void keep_loss(double loss);
  void show_iteration(const std::vector<std::vector<double>>& outputs);
  void tell(int test_net, std::optional<double> loss, std::optional<float> rate,
            const std::vector<std::vector<double>>& outputs);
  void finish();
  bool at_interval(int interval) const { return interval > 0 && iter_ % interval == 0; }
  bool wants_test() const;
  void serve_requests();
  void test(int index);
  bool run_test(TestNet& test, double* loss);
  void sum_test(const TestNet& test, std::vector<std::vector<double>>& sums, double* loss) const;
  int ranks() const { return options_.group ? options_.group->ranks() : 1; }
  int rank() const { return options_.group ? options_.group->rank() : 0; }
  bool leads() const { return rank() == 0; }
  int ranks_of_test(int iterations) const;
  double mean_over_ranks(double value) const;
  std::vector<std::vector<double>> train_outputs() const;
  SolverRequest take_request();
  void join_statistics();
  void check_best() const;
  size_t best_output() const;
  void judge_test();
  void take_detections(TestNet& test, std::vector<std::vector<double>>& values) const;
  double score_of(const TestNet& test, size_t output) const;
  [[noreturn]] void stop_at_loss(float loss);

  SolverParameter param_;
  SolverOptions options_;
  std::string prefix_;
  uint64_t seed_ = 0;
  std::unique_ptr<Net> net_;
  std::vector<TestNet> tests_;
  LearningRate rate_;
  std::unique_ptr<Updater> updater_;
  std::optional<LossScale> loss_scale_;
  int iter_ = 0;
  bool stop_ = false;
  std::string last_state_;  // of this run
  std::optional<BestScore> best_;
  std::vector<double> losses_;
  size_t oldest_loss_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_display_;
  int last_display_iter_ = 0;
  IterationTrace trace_;
  int first_iter_ = 0;  // of solve()
};

}  // namespace crema
