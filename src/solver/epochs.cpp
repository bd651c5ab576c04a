// The source is opened for its number of records; the net opens it again later.
#include "solver/epochs.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "net/lint.h"
#include "solver/solver_nets.h"

namespace crema {
namespace {

void check(const SolverParameter& param, const std::string& file) {
  ErrorList errors;
  const auto rule = [&](bool has_epochs, float epochs, const char* field, bool has_other,
                        const char* other) {
    if (!has_epochs) return;
    if (has_other) errors.add(Error(str(file, ": gives both ", field, " and ", other)));
    if (!(epochs > 0)) errors.add(Error(str(file, ": ", field, " must be above 0, not ", epochs)));
  };
  rule(param.has_max_epoch(), param.max_epoch(), "max_epoch", param.has_max_iter(), "max_iter");
  rule(param.has_test_epoch(), param.test_epoch(), "test_epoch", param.has_test_interval(),
       "test_interval");
  rule(param.has_snapshot_epoch(), param.snapshot_epoch(), "snapshot_epoch", param.has_snapshot(),
       "snapshot");
  errors.throw_if_any();
}

}  // namespace

void resolve_epochs(SolverParameter& param, const std::string& file, const ReadOptions& options,
                    int ranks) {
  if (!param.has_max_epoch() && !param.has_test_epoch() && !param.has_snapshot_epoch()) return;
  check(param, file);
  const NetSource source = train_net_source(param, file, options);
  const SetSize set = set_size(net_in_phase(source.net, TRAIN, source.file));
  require(set.records > 0, file,
          ": lengths in epochs need a train net that reads records from a database or files; give "
          "max_iter, test_interval and snapshot instead");
  const double epoch = static_cast<double>(set.records) / (static_cast<double>(set.batch_size) *
                                                           std::max(1, param.iter_size()) * ranks);
  const auto iterations = [&](float epochs) {
    return std::max(1, static_cast<int>(std::lround(epochs * epoch)));
  };
  if (param.has_max_epoch()) {
    param.set_max_iter(std::max(1, static_cast<int>(std::ceil(param.max_epoch() * epoch - 1e-6))));
  }
  if (param.has_test_epoch()) param.set_test_interval(iterations(param.test_epoch()));
  if (param.has_snapshot_epoch()) param.set_snapshot(iterations(param.snapshot_epoch()));
  param.clear_max_epoch();
  param.clear_test_epoch();
  param.clear_snapshot_epoch();
  LOG(INFO) << "An epoch is " << epoch << " iterations (" << set.records << " records of layer \""
            << set.layer << "\" in batches of " << set.batch_size << "): max_iter "
            << param.max_iter() << ", test_interval " << param.test_interval() << ", snapshot "
            << param.snapshot();
}

}  // namespace crema
