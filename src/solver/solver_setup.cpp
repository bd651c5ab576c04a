// What a solver does before and beside its loop: checks, nets, weights, and the state that is
// written and gone on from.
#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"
#include "feed/feed.h"
#include "io/weights.h"
#include "solver/snapshot.h"
#include "solver/solver.h"

namespace crema {
namespace {

uint64_t seed_of(const SolverParameter& param, const std::optional<SolverSnapshot>& state) {
  if (state && state->seed) {
    if (param.random_seed() >= 0 && static_cast<uint64_t>(param.random_seed()) != *state->seed) {
      LOG(WARNING) << "The state's seed " << *state->seed << " is used, not random_seed "
                   << param.random_seed();
    }
    return *state->seed;
  }
  if (param.random_seed() >= 0) return static_cast<uint64_t>(param.random_seed());
  const uint64_t drawn = std::random_device{}() & 0x7fffffffu;
  LOG(INFO) << "Drew the seed " << drawn << "; random_seed: " << drawn << " repeats this run";
  return drawn;
}

/// A line for each number of the solver that is not finite: none of them has a use for it.
void check_finite(const SolverParameter& param, const std::function<void(const Error&)>& add) {
  const google::protobuf::Reflection& fields = *param.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> given;
  fields.ListFields(param, &given);
  for (const google::protobuf::FieldDescriptor* field : given) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_FLOAT) continue;
    const float value = fields.GetFloat(param, field);
    if (!std::isfinite(value)) add(Error(str(field->name(), " must be finite, not ", value)));
  }
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// Moves each data layer of a net to where it stands after `batches` forward passes.
void seek_batches(Net& net, uint64_t batches) {
  for (int i = 0; i < net.layer_count(); ++i) {
    Feed* feed = net.layer(i).feed();
    if (feed == nullptr) continue;
    feed->seek(batches * static_cast<uint64_t>(feed->shapes().at(0).dim_or_one(0)));
  }
  net.set_forward_count(batches);
}

/// Moves each data layer of a net to its cursor; of several with one name each has its own, in the
/// order of the net. Layers that have none stay. Cursors count the records of all readers.
void seek_cursors(Net& net, int number, const std::vector<RecordCursor>& cursors, int readers) {
  std::map<std::string, std::deque<uint64_t>> records;
  for (const RecordCursor& cursor : cursors) {
    if (cursor.net == number) records[cursor.layer].push_back(cursor.record);
  }
  for (int i = 0; i < net.layer_count(); ++i) {
    Feed* feed = net.layer(i).feed();
    std::deque<uint64_t>& own = records[net.layer_name(i)];
    if (feed == nullptr || own.empty()) continue;
    feed->seek(own.front() / static_cast<uint64_t>(readers));
    own.pop_front();
  }
}

/// Whether a test net has parameters beside those that it shares with the train net.
bool has_own_params(const Net& test, const Net& train) {
  const auto is_shared = [&](const NetParam& param) {
    return std::any_of(train.params().begin(), train.params().end(),
                       [&](const NetParam& other) { return other.value.data == param.value.data; });
  };
  return !std::all_of(test.params().begin(), test.params().end(), is_shared);
}

/// The solver's weights files; those of one text have commas between them.
std::vector<std::string> weights_files(const SolverParameter& param) {
  std::vector<std::string> out;
  for (const std::string& list : param.weights()) {
    for (const std::string& part : split(list, ',')) out.push_back(trimmed(part));
  }
  return out;
}

}  // namespace

void Solver::check_fields() const {
  ErrorList errors;
  const auto check = [&](bool ok, const std::string& text) {
    if (!ok) errors.add(Error(text).at(options_.file));
  };
  check_finite(param_, [&](const Error& error) { errors.add(error.at(options_.file)); });
  try {
    check_update_fields(param_);
  } catch (const Error& error) {
    errors.add(error.at(options_.file));
  }
  check(param_.average_loss() >= 1,
        str("average_loss must be at least 1, not ", param_.average_loss()));
  check(param_.display() >= 0, str("display must not be negative: ", param_.display()));
  check(param_.snapshot() >= 0, str("snapshot must not be negative: ", param_.snapshot()));
  check(param_.max_iter() >= 0, str("max_iter must not be negative: ", param_.max_iter()));
  check(param_.eval_type() == "classification" || param_.eval_type() == "detection",
        str("eval_type: \"", param_.eval_type(), "\" must be classification or detection"));
  try {
    ap_kind(param_.ap_version());
  } catch (const Error& error) {
    errors.add(error.at(options_.file));
  }
  errors.throw_if_any();
}

void Solver::start(const std::optional<SolverSnapshot>& state) {
  const std::vector<std::string> files =
      state ? std::vector{find_learned_net(*state, options_.resume)} : weights_files(param_);
  std::vector<WeightsFile> weights;  // read before the nets are built, which may take long
  for (const std::string& file : files) weights.push_back(read_weights(file));
  seed_ = seed_of(param_, state);
  build_nets();
  check_best();
  updater_ = std::make_unique<Updater>(param_, *net_, options_.group.get());
  if (state) restore_history(*state);
  for (size_t i = 0; i < files.size(); ++i) {
    if (!state) LOG(INFO) << "Finetuning from " << files[i];
    net_->load_weights(weights[i], files[i]);
    for (TestNet& test : tests_) {
      if (!state && has_own_params(*test.net, *net_)) test.net->load_weights(weights[i], files[i]);
    }
  }
  if (!files.empty()) net_->params_changed();
  if (state) restore_place(*state);
  LOG(INFO) << "Solver scaffolding done.";
}

NetOptions Solver::net_options(const NetSource& source, Phase phase) const {
  NetOptions options;
  options.phase = phase;
  options.train = phase == TRAIN;
  options.keep_all = param_.debug_info();
  options.fuse = options_.fuse;
  options.force_nchw = options_.force_nchw;
  options.precision = options_.precision;
  if (phase == TRAIN) {
    options.memory_limit = options_.memory_limit;
    options.histories = history_count(parse_rule(param_.type()));
    options.bucket_bytes = options_.bucket_bytes;
  }
  options.seed = seed_;
  options.log = leads();
  options.ranks = phase == TRAIN ? ranks() : ranks_of_test(source.test_iter);
  options.rank = rank() % options.ranks;
  options.file = source.file;
  return options;
}

void Solver::build_nets() {
  LOG(INFO) << "Initializing solver from parameters: \n" << write_text(param_);
  const NetSource train = train_net_source(param_, options_.file, options_.read);
  const std::vector<NetSource> tests = test_net_sources(param_, options_.file, options_.read);
  LOG(INFO) << "Creating training net " << (train.file == options_.file ? "specified in " : "from ")
            << train.origin << (train.file == options_.file ? "." : "");
  net_ = std::make_unique<Net>(train.net, net_options(train, TRAIN), options_.ops);
  try {
    loss_scale_.emplace(train.net, net_->precision());
  } catch (const Error& error) {
    throw error.at(train.file);
  }
  use_loss_scale();
  for (const NetSource& source : tests) {
    LOG(INFO) << "Creating test net (#" << tests_.size() << ") specified by " << source.origin;
    tests_.push_back({.net = std::make_unique<Net>(source.net, net_options(source, TEST),
                                                   options_.ops, net_.get()),
                      .iterations = source.test_iter,
                      .ranks = ranks_of_test(source.test_iter),
                      .scores = {},
                      .detections = {},
                      .began = {}});
  }
}

/// From now on backward multiplies by it.
void Solver::use_loss_scale() {
  StepScalars step = net_->ops().step();
  step.loss_scale = loss_scale_->value();
  net_->ops().set_step(step);
}

std::string Solver::snapshot() {
  join_statistics();
  const SnapshotFiles files = snapshot_files(prefix_, iter_, param_.snapshot_format());
  if (!leads()) return last_state_ = files.state;
  const bool hdf5 = param_.snapshot_format() == SolverParameter::HDF5;
  const char* kind = hdf5 ? "HDF5 file " : "binary proto file ";
  LOG(INFO) << "Snapshotting to " << kind << files.weights;
  write_net(*net_, files.weights, param_.snapshot_format(), param_.snapshot_diff());
  SolverSnapshot state;
  state.iter = iter_;
  state.current_step = rate_.current_step();
  state.learned_net = files.weights;
  state.history = updater_->history();
  state.seed = seed_;
  state.forward_count = net_->forward_count();
  state.best = best_;
  if (loss_scale_->is_in_use()) {
    state.loss_scale = loss_scale_->value();
    state.loss_scale_steps = loss_scale_->steps();
  }
  // Counted over all ranks, so that another number of them can go on.
  const auto keep = [&](int net, const std::string& layer, uint64_t record, int readers) {
    const uint64_t of_all = record * static_cast<uint64_t>(readers);
    state.cursors.push_back({.net = net, .layer = layer, .record = of_all});
  };
  for (const auto& [layer, record] : net_->cursors()) keep(0, layer, record, ranks());
  for (size_t i = 0; i < tests_.size(); ++i) {
    const Position position = tests_[i].began ? *tests_[i].began : tests_[i].now();
    for (const auto& [layer, record] : position.cursors) {
      keep(static_cast<int>(i) + 1, layer, record, tests_[i].ranks);
    }
    state.test_forward_counts.push_back(position.forward_count);
  }
  LOG(INFO) << "Snapshotting solver state to " << kind << files.state;
  hdf5 ? write_solver_state_hdf5(files.state, state)
       : write_solver_state_binary(files.state, state);
  return last_state_ = files.state;
}

void Solver::restore_history(const SolverSnapshot& state) {
  LOG(INFO) << "Resuming from " << options_.resume;
  try {
    updater_->set_history(state.history);
  } catch (const Error& error) {
    throw error.at(options_.resume);
  }
}

void Solver::restore_place(const SolverSnapshot& state) {
  iter_ = state.iter;
  rate_.set_current_step(state.current_step);
  last_state_ = options_.resume;
  best_ = state.best;
  if (state.loss_scale) loss_scale_->restore(*state.loss_scale, state.loss_scale_steps);
  use_loss_scale();
  if (state.forward_count) {
    restore_cursors(state);
  } else {
    derive_cursors();
  }
}

void Solver::restore_cursors(const SolverSnapshot& state) {
  net_->set_forward_count(*state.forward_count);
  for (size_t i = 0; i < tests_.size() && i < state.test_forward_counts.size(); ++i) {
    tests_[i].net->set_forward_count(state.test_forward_counts[i]);
  }
  seek_cursors(*net_, 0, state.cursors, ranks());
  for (size_t i = 0; i < tests_.size(); ++i) {
    seek_cursors(*tests_[i].net, static_cast<int>(i) + 1, state.cursors, tests_[i].ranks);
  }
}

void Solver::derive_cursors() {
  // BVLC: every data layer starts again at its first record.
  seek_batches(*net_, static_cast<uint64_t>(iter_) * static_cast<uint64_t>(param_.iter_size()));
  for (TestNet& test : tests_) {
    seek_batches(*test.net, static_cast<uint64_t>(tests_before(iter_)) *
                                static_cast<uint64_t>(test.iterations / test.ranks));
  }
}

int Solver::tests_before(int iter) const {
  const int interval = param_.test_interval();
  if (interval <= 0 || iter <= 0) return 0;
  return (iter + interval - 1) / interval - (param_.test_initialization() ? 0 : 1);
}

}  // namespace crema
