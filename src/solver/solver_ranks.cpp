// What a solver does together with the ranks that train the same net. Alone, all of it is nothing.
#include "base/error.h"
#include "solver/show_outputs.h"
#include "solver/solver.h"

namespace crema {
/// The most ranks that can share a test without anyone reading another number of batches, so that
/// it covers the records that one rank alone would.
int Solver::ranks_of_test(int iterations) const {
  // The scores of detections are not sums.
  if (param_.eval_type() == "detection") return 1;
  int most = ranks();
  while (iterations % most != 0) --most;
  return most;
}

double Solver::mean_over_ranks(double value) const {
  if (ranks() == 1) return value;
  options_.group->sum({&value, 1});
  return value / ranks();
}

std::vector<std::vector<double>> Solver::train_outputs() const {
  std::vector<std::vector<double>> outputs = outputs_of(*net_);
  if (ranks() == 1) return outputs;
  for (std::vector<double>& output : outputs) {
    options_.group->sum(output);
    for (double& value : output) value /= ranks();
  }
  return outputs;
}

SolverRequest Solver::take_request() {
  SolverRequest request = leads() ? options_.take_request() : SolverRequest{};
  if (ranks() == 1) return request;
  double asked[] = {request.stop ? 1.0 : 0.0, request.snapshot ? 1.0 : 0.0};
  options_.group->sum(asked);
  return {.stop = asked[0] > 0, .snapshot = asked[1] > 0};
}

/// Statistics move with each rank's own records; all go on from their mean. Running means are
/// linear in what they have seen, so it does not matter how often this is done.
void Solver::join_statistics() {
  if (ranks() == 1) return;
  bool has_any = false;
  for (size_t i = 0; i < net_->params().size(); ++i) {
    if (net_->params()[i].learnable) continue;
    const std::vector<float> own = net_->param_values(static_cast<int>(i));
    std::vector<double> values(own.begin(), own.end());
    options_.group->sum(values);
    std::vector<float> mean;
    mean.reserve(values.size());
    for (const double sum : values) mean.push_back(static_cast<float>(sum / ranks()));
    net_->set_param_values(static_cast<int>(i), mean);
    has_any = true;
  }
  if (has_any) net_->params_changed();
}

/// Of a rank that read nothing the sums are empty: it adds zeros.
void Solver::sum_test(const TestNet& test, std::vector<std::vector<double>>& sums,
                      double* loss) const {
  if (ranks() == 1) return;
  Communicator& group = *options_.group;
  group.sum({loss, 1});
  std::vector<double> sizes;
  for (size_t k = 0; k < test.net->outputs().size(); ++k) {
    sizes.push_back(leads() ? static_cast<double>(sums[k].size()) : 0.0);
  }
  group.sum(sizes);
  sums.resize(sizes.size());
  for (size_t k = 0; k < sizes.size(); ++k) {
    const auto size = static_cast<size_t>(sizes[k]);
    if (rank() < test.ranks) {
      require(sums[k].size() == size, "output \"", test.net->outputs()[k].name, "\" has ",
              sums[k].size(), " values on one GPU and ", size, " on another: it has no mean");
    }
    sums[k].resize(size);
    group.sum(sums[k]);
  }
}

}  // namespace crema
