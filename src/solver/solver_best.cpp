// keep_best and patience: the weights of the best test so far, and an end when tests stop getting
// better.
#include <glog/logging.h>

#include <algorithm>

#include "base/error.h"
#include "solver/snapshot.h"
#include "solver/solver.h"

namespace crema {
namespace {

/// Losses and errors are better when lower.
bool is_lower_better(const NetOutput& output) {
  return output.loss_weight != 0 || output.name.find("loss") != std::string::npos ||
         output.name.find("error") != std::string::npos;
}

}  // namespace

void Solver::check_best() const {
  require(param_.patience() >= 0, options_.file,
          ": patience must not be negative: ", param_.patience());
  if (!param_.has_keep_best()) {
    require(param_.patience() == 0, options_.file,
            ": patience needs keep_best, the test output that it watches");
    return;
  }
  require(!tests_.empty(), options_.file,
          ": keep_best needs a test net: test_iter and test_interval are missing");
  require(tests_[0].iterations > 0, options_.file,
          ": keep_best needs batches of the first test net: its test_iter is 0");
  std::vector<std::string> names;
  for (const NetOutput& output : tests_[0].net->outputs()) names.push_back(output.name);
  require(best_output() < names.size(), options_.file, ": keep_best: the test net has no output \"",
          param_.keep_best(), "\"", did_you_mean(param_.keep_best(), names), "; it has ",
          join(names));
}

size_t Solver::best_output() const {
  const std::vector<NetOutput>& outputs = tests_[0].net->outputs();
  const auto found = std::find_if(outputs.begin(), outputs.end(), [&](const NetOutput& output) {
    return output.name == param_.keep_best();
  });
  return static_cast<size_t>(found - outputs.begin());
}

void Solver::judge_test() {
  const size_t place = best_output();
  const std::vector<double>& values = tests_[0].scores.at(place);
  if (values.empty()) return;
  const auto score = static_cast<float>(values[0]);
  const bool is_lower = is_lower_better(tests_[0].net->outputs()[place]);
  // Comparisons with NaN are false: such a score is never the best.
  const bool is_better =
      score == score && (!best_ || (is_lower ? score < best_->score : score > best_->score));
  if (is_better) {
    best_ = BestScore{.score = score, .iter = iter_, .tests_since = 0};
    const std::string file = best_file(prefix_, param_.snapshot_format());
    if (!leads()) return;
    write_net(*net_, file, param_.snapshot_format(), false);
    LOG(INFO) << "Best " << param_.keep_best() << " so far: " << score << " at iteration " << iter_
              << ", kept in " << file;
    return;
  }
  if (best_) ++best_->tests_since;
  const int tests = best_ ? best_->tests_since : 0;
  if (param_.patience() == 0 || tests < param_.patience()) return;
  LOG_IF(INFO, leads()) << "Stopping: " << param_.keep_best() << " got no better in " << tests
                        << " tests; the best was " << best_->score << " at iteration "
                        << best_->iter;
  stop_ = true;
}

}  // namespace crema
