// The loop. The order of its steps is part of the contract with Caffe: test, forward and backward,
// display, rate, clip, update, count, snapshot, stop.
#include "solver/solver.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "net/upgrade.h"
#include "solver/epochs.h"
#include "solver/show_outputs.h"
#include "solver/snapshot.h"

namespace crema {
namespace {

/// In today's form, with lengths in iterations.
SolverParameter upgraded(const SolverParameter& param, const SolverOptions& options) {
  SolverParameter out = param;
  upgrade_solver(out, options.file);
  resolve_epochs(out, options.file, options.read, options.group ? options.group->ranks() : 1);
  return out;
}

LearningRate learning_rate(const SolverParameter& param, const SolverOptions& options) {
  try {
    return LearningRate(param, !options.group || options.group->rank() == 0);
  } catch (const Error& error) {
    throw error.at(options.file);
  }
}

}  // namespace

Solver::Solver(const SolverParameter& param, const SolverOptions& options)
    : param_(upgraded(param, options)),
      options_(options),
      prefix_(snapshot_prefix(param_, options.file)),
      rate_(learning_rate(param_, options)) {
  check_fields();
  if (param_.snapshot() > 0 || param_.snapshot_after_train() || param_.has_keep_best()) {
    try {
      require_writable_prefix(prefix_);
    } catch (const Error& error) {
      throw error.at(options_.file);
    }
  }
  start(options_.resume.empty() ? std::nullopt : std::optional(read_solver_state(options_.resume)));
}

Solver::~Solver() = default;

void Solver::step(int iterations) {
  losses_.clear();
  oldest_loss_ = 0;
  last_display_ = std::chrono::steady_clock::now();
  last_display_iter_ = iter_;
  for (const int end = iter_ + iterations; iter_ < end && !stop_;) iterate();
}

void Solver::iterate() {
  if (wants_test()) test_all();
  if (stop_) return;
  trace_.begin(iter_ - first_iter_);
  const bool display = at_interval(param_.display());
  keep_loss(forward_backward(display));
  const auto outputs = display ? train_outputs() : std::vector<std::vector<double>>{};
  if (display) show_iteration(outputs);
  const float rate = rate_.at(iter_);
  if (display) {
    LOG_IF(INFO, leads()) << "Iteration " << iter_ << ", lr = " << rate;
    tell(-1, smoothed_loss(), rate, outputs);
  }
  try {
    updater_->update(iter_, rate, *loss_scale_);
  } catch (const Error& error) {
    throw error.at(str("iteration ", iter_));
  }
  trace_.end(iter_ - first_iter_);
  ++iter_;
  const SolverRequest request = take_request();
  if (at_interval(param_.snapshot()) || request.snapshot) snapshot();
  stop_ |= request.stop;
}

float Solver::forward_backward(bool display) {
  const bool debug = display && param_.debug_info();
  net_->clear_gradients();
  float sum = 0;
  for (int i = 0; i < param_.iter_size(); ++i) {
    const bool sums = options_.overlap_sums && i + 1 == param_.iter_size();
    const float loss = debug  ? net_->forward()
                       : sums ? updater_->forward_backward_and_sum()
                              : net_->forward_backward();
    if (!std::isfinite(loss)) stop_at_loss(loss);
    if (debug) {  // what it shows are a rank's own gradients
      net_->log_debug_forward();
      net_->backward();
      net_->log_debug_backward();
    }
    sum += loss;
  }
  return static_cast<float>(mean_over_ranks(sum / static_cast<float>(param_.iter_size())));
}

void Solver::stop_at_loss(float loss) {
  // BVLC: trains on, and writes snapshots of nothing but NaN.
  const std::string where = net_->find_not_finite();
  fail("iteration ", iter_, ": the loss is ", loss, "; ",
       where.empty() ? "every blob is finite when the layers run again"
                     : where + " is the first that is not finite",
       iter_ > 0 ? "; a smaller base_lr or clip_gradients may help" : "",
       last_state_.empty() ? "" : "; the last good snapshot is " + last_state_);
}

void Solver::keep_loss(double loss) {
  if (losses_.size() < static_cast<size_t>(param_.average_loss())) {
    losses_.push_back(loss);
    return;
  }
  losses_[oldest_loss_] = loss;
  oldest_loss_ = (oldest_loss_ + 1) % losses_.size();
}

double Solver::smoothed_loss() const {
  if (losses_.empty()) return 0;
  return std::accumulate(losses_.begin(), losses_.end(), 0.0) / static_cast<double>(losses_.size());
}

void Solver::show_iteration(const std::vector<std::vector<double>>& outputs) {
  if (!leads()) return;
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - last_display_).count();
  const double rate = seconds > 0 ? (iter_ - last_display_iter_) / seconds : 0;
  LOG(INFO) << "Iteration " << iter_ << " (" << static_cast<float>(rate) << " iter/s, "
            << static_cast<float>(seconds) << "s/" << param_.display()
            << " iters), loss = " << static_cast<float>(smoothed_loss());
  show_outputs("Train", net_->outputs(), outputs);
  options_.progress({.iter = iter_, .max_iter = param_.max_iter(), .iterations_per_second = rate});
  last_display_ = now;
  last_display_iter_ = iter_;
}

void Solver::solve() {
  LOG_IF(INFO, leads()) << "Solving " << net_->name();
  LOG_IF(INFO, leads()) << "Learning Rate Policy: " << param_.lr_policy();
  stop_ = false;
  first_iter_ = iter_;
  trace_ = IterationTrace(options_.trace, param_.max_iter() - iter_);
  step(param_.max_iter() - iter_);
  if (param_.snapshot_after_train() && !at_interval(param_.snapshot())) snapshot();
  if (!stop_) finish();
  LOG_IF(INFO, leads()) << (stop_ ? "Optimization stopped early." : "Optimization Done.");
}

void Solver::finish() {
  if (at_interval(param_.display())) {
    const float loss = net_->forward();
    if (!std::isfinite(loss)) stop_at_loss(loss);
    keep_loss(mean_over_ranks(loss));
    LOG_IF(INFO, leads()) << "Iteration " << iter_
                          << ", loss = " << static_cast<float>(smoothed_loss());
    tell(-1, smoothed_loss(), std::nullopt, train_outputs());
  }
  if (at_interval(param_.test_interval())) test_all();
}

bool Solver::wants_test() const {
  return at_interval(param_.test_interval()) && (iter_ > 0 || param_.test_initialization());
}

void Solver::test_all() {
  join_statistics();
  for (TestNet& test : tests_) test.began = test.now();
  for (size_t i = 0; i < tests_.size() && !stop_; ++i) test(static_cast<int>(i));
  if (stop_) return;
  for (TestNet& test : tests_) test.began.reset();
}

void Solver::test(int index) {
  TestNet& test = tests_[static_cast<size_t>(index)];
  LOG_IF(INFO, leads()) << "Iteration " << iter_ << ", Testing net (#" << index << ")";
  if (test.iterations == 0) return;
  double loss = 0;
  if (!run_test(test, &loss)) {
    LOG_IF(INFO, leads()) << "Test interrupted.";
    return;
  }
  const bool shows_loss = leads() && param_.test_compute_loss();
  LOG_IF(INFO, shows_loss) << "Test loss: " << static_cast<float>(loss);
  if (leads()) show_outputs("Test", test.net->outputs(), test.scores);
  if (index == 0 && param_.has_keep_best()) judge_test();
  tell(index, param_.test_compute_loss() ? std::optional(loss) : std::nullopt, std::nullopt,
       test.scores);
}

void Solver::tell(int test_net, std::optional<double> loss, std::optional<float> rate,
                  const std::vector<std::vector<double>>& values) {
  if (!leads()) return;
  const Net& net = test_net >= 0 ? *tests_[static_cast<size_t>(test_net)].net : *net_;
  SolverEvent event{.iter = iter_, .test_net = test_net, .loss = loss, .rate = rate, .outputs = {}};
  event.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  for (size_t i = 0; i < values.size(); ++i) {
    event.outputs.emplace_back(net.outputs()[i].name, values[i]);
  }
  options_.observe(event);
}

bool Solver::run_test(TestNet& test, double* loss) {
  std::vector<std::vector<double>> sums;
  test.detections.clear();
  for (int i = 0; i < test.iterations / test.ranks; ++i) {
    serve_requests();
    if (stop_) return false;
    if (rank() >= test.ranks) continue;
    *loss += test.net->forward() / test.iterations;
    if (param_.debug_info() && leads()) test.net->log_debug_forward();
    std::vector<std::vector<double>> values = outputs_of(*test.net);
    if (param_.eval_type() == "detection") take_detections(test, values);
    add_outputs(test.net->outputs(), values, sums);
  }
  for (std::vector<double>& output : sums) {
    for (double& sum : output) sum /= test.iterations;
  }
  for (const auto& [k, detections] : test.detections) sums[k] = {score_of(test, k)};
  sum_test(test, sums, loss);
  test.scores = std::move(sums);
  return true;
}

/// Takes DetectionEvaluate's rows, [1, 1, K, 5], out of the values: they have no mean.
void Solver::take_detections(TestNet& test, std::vector<std::vector<double>>& values) const {
  for (size_t k = 0; k < values.size(); ++k) {
    const std::string& name = test.net->outputs()[k].name;
    const Shape shape = test.net->blob_shape(name);
    if (shape.axes() != 4 || shape[3] != DetectionScore::kRow) continue;
    try {
      test.detections[k].add(std::vector<float>(values[k].begin(), values[k].end()));
    } catch (const Error& error) {
      throw error.at(str("output \"", name, '"'));
    }
    values[k] = {0};
  }
}

double Solver::score_of(const TestNet& test, size_t output) const {
  const ApKind kind = ap_kind(param_.ap_version());
  const DetectionScore& detections = test.detections.at(output);
  if (param_.show_per_class_result()) {
    for (const auto& [label, score] : detections.per_class(kind)) {
      LOG_IF(INFO, leads()) << "class" << label << ": " << static_cast<float>(score);
    }
  }
  return detections.mean(kind);
}

void Solver::serve_requests() {
  const SolverRequest request = take_request();
  if (request.snapshot) snapshot();
  stop_ |= request.stop;
}

}  // namespace crema
