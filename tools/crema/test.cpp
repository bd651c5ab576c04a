// crema test: a net with its weights over some batches; the outputs of each and their means.
#include <glog/logging.h>

#include "base/error.h"
#include "commands.h"
#include "io/weights.h"
#include "solver/show_outputs.h"

namespace crema {
namespace {

/// Sums of the outputs' elements over batches.
using Scores = std::vector<std::vector<double>>;

void show_batch(int batch, const Net& net, const Scores& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t shown = std::min(values[i].size(), kShownElements);
    for (size_t k = 0; k < shown; ++k) {
      LOG(INFO) << "Batch " << batch << ", " << net.outputs()[i].name << " = "
                << static_cast<float>(values[i][k]);
    }
  }
}

void show_means(const Net& net, const Scores& sums) {
  for (size_t i = 0; i < sums.size(); ++i) {
    const NetOutput& output = net.outputs()[i];
    const size_t shown = std::min(sums[i].size(), kShownElements);
    for (size_t k = 0; k < shown; ++k) {
      const double mean = sums[i][k] / FLAGS_iterations;
      LOG(INFO) << output.name << " = " << static_cast<float>(mean)
                << weighted(output.loss_weight, mean);
    }
    if (shown < sums[i].size()) {
      LOG(INFO) << "The first " << shown << " of " << sums[i].size() << " values of \""
                << output.name << "\" are shown.";
    }
  }
}

}  // namespace

int test_command() {
  require_flag(FLAGS_model, "test", "model", "the net to score");
  require_flag(FLAGS_weights, "test", "weights", "its weights");
  require(FLAGS_iterations > 0, "--iterations must be above 0, not ", FLAGS_iterations);
  const NetParameter model = read_model(TEST);
  const WeightsFile weights = read_weights(FLAGS_weights);
  Net net(model, net_options(), make_ops(chosen_device()));
  net.load_weights(weights, FLAGS_weights);
  net.params_changed();
  LOG(INFO) << "Running for " << FLAGS_iterations << " iterations.";
  double loss = 0;
  Scores sums;
  for (int batch = 0; batch < FLAGS_iterations; ++batch) {
    loss += net.forward();
    const Scores values = outputs_of(net);
    show_batch(batch, net, values);
    add_outputs(net.outputs(), values, sums);
  }
  LOG(INFO) << "Loss: " << static_cast<float>(loss / FLAGS_iterations);
  show_means(net, sums);
  return 0;
}

}  // namespace crema
