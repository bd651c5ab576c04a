// Update rules per parameter group; the formulas themselves are Ops::update.
#include "solver/updater.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/trace.h"
#include "ops/kernels/sum_of_squares.h"

namespace crema {
namespace {

constexpr int64_t kPiece = 4096;  // elements that one partial sum of a norm covers

const std::vector<std::pair<std::string, Rule>>& rules() {
  static const std::vector<std::pair<std::string, Rule>> table = {
      {"SGD", Rule::sgd},         {"Nesterov", Rule::nesterov}, {"AdaGrad", Rule::adagrad},
      {"RMSProp", Rule::rmsprop}, {"AdaDelta", Rule::adadelta}, {"Adam", Rule::adam}};
  return table;
}

/// `values` as a tensor of `count` elements that begins `offset` elements into `base`.
Tensor part(const Tensor& base, int64_t offset, const Shape& shape) {
  return {base.f32() + offset, TensorDesc{shape}};
}

/// A legacy shape of four sizes stands for one without its leading ones.
bool same_shape(const Shape& a, const Shape& b) {
  const int axes = std::max(a.axes(), b.axes());
  for (int i = 1; i <= axes; ++i) {
    const int64_t x = i <= a.axes() ? a[a.axes() - i] : 1, y = i <= b.axes() ? b[b.axes() - i] : 1;
    if (x != y) return false;
  }
  return true;
}

int64_t pieces(int64_t count) { return (count + kPiece - 1) / kPiece; }

}  // namespace

Rule parse_rule(const std::string& type) {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules()) {
    if (name == type) return rule;
    names.push_back(name);
  }
  fail("type: there is no solver \"", type, "\"", did_you_mean(type, names), "; there are ",
       join(names));
}

void check_update_fields(const SolverParameter& param) {
  ErrorList errors;
  const auto check = [&](bool ok, const std::string& text) {
    if (!ok) errors.add(Error(text));
  };
  try {
    const Rule rule = parse_rule(param.type());
    const bool without_momentum = rule == Rule::adagrad || rule == Rule::rmsprop;
    check(!without_momentum || param.momentum() == 0,
          str("momentum must be 0 for ", param.type(), ", not ", param.momentum()));
    const auto check_below_1 = [&](const char* field, float value) {
      // BVLC: not checked; the correction divides by 1 - momentum^t.
      check(rule != Rule::adam || (value >= 0 && value < 1),
            str(field, " must be in [0, 1) for Adam, not ", value));
    };
    check_below_1("momentum", param.momentum());
    check_below_1("momentum2", param.momentum2());
    check(rule != Rule::rmsprop || (param.rms_decay() >= 0 && param.rms_decay() < 1),
          str("rms_decay must be in [0, 1), not ", param.rms_decay()));
  } catch (const Error& error) {
    errors.add(error);
  }
  check(param.regularization_type() == "L2" || param.regularization_type() == "L1",
        str("regularization_type must be L1 or L2, not ", param.regularization_type()));
  check(param.iter_size() >= 1, str("iter_size must be at least 1, not ", param.iter_size()));
  errors.throw_if_any();
}

Updater::Updater(const SolverParameter& param, Net& net)
    : net_(net),
      rule_(parse_rule(param.type())),
      momentum_(param.momentum()),
      momentum2_(param.momentum2()),
      clip_(param.clip_gradients()),
      iter_size_(param.iter_size()) {
  int64_t partial_sums = 0;
  for (const Net::Group& group : net.groups()) {
    GroupState state{.group = &group, .rule = {}, .buffer = nullptr, .history = {}};
    state.rule = {.rule = rule_,
                  .lr_mult = group.lr_mult,
                  .decay = param.weight_decay() * group.decay_mult,
                  .l1 = param.regularization_type() == "L1",
                  .momentum = momentum_,
                  .momentum2 = momentum2_,
                  .rms_decay = param.rms_decay(),
                  .delta = param.delta()};
    const int64_t count = group.value.count();
    const int tensors = history_count(rule_);
    state.buffer =
        net.ops().allocate(static_cast<size_t>(count * tensors) * sizeof(float), Memory::device);
    for (int i = 0; i < tensors; ++i) {
      state.history.push_back(
          {static_cast<float*>(state.buffer.get()) + i * count, TensorDesc{Shape{count}}});
    }
    groups_.push_back(std::move(state));
    partial_sums += pieces(count);
  }
  if (clip_ >= 0) {
    partial_sums_ =
        net.ops().allocate(static_cast<size_t>(partial_sums) * sizeof(float), Memory::device);
  }
}

double Updater::gradient_norm() const {
  int64_t total = 0;
  for (const GroupState& state : groups_) {
    const Tensor& gradient = state.group->gradient;
    if (!gradient) continue;
    float* sums = static_cast<float*>(partial_sums_.get()) + total;
    run_rows(
        net_.ops(),
        SumOfSquares{.x = gradient.f32(), .sums = sums, .count = gradient.count(), .piece = kPiece},
        pieces(gradient.count()), kPiece);
    total += pieces(gradient.count());
  }
  std::vector<float> sums(static_cast<size_t>(total));
  if (total > 0) net_.ops().download({partial_sums_.get(), TensorDesc{Shape{total}}}, sums.data());
  double sum = 0;
  for (float piece : sums) sum += piece;
  return std::sqrt(sum);
}

float Updater::clip_factor() const {
  if (clip_ < 0) return 1;
  const double norm = gradient_norm();
  require(std::isfinite(norm), "the L2 norm of the gradients is ", norm,
          ", there is nothing to clip");
  if (norm <= clip_) return 1;
  const double factor = clip_ / norm;
  LOG(INFO) << "Gradient clipping: scaling down gradients (L2 norm " << norm << " > " << clip_
            << ") by scale factor " << factor;
  return static_cast<float>(factor);
}

void Updater::update(int iter, float rate) {
  const TraceSpan span("update", "update", true);
  StepScalars step;
  step.rate = rate;
  step.grad_scale = clip_factor() / static_cast<float>(iter_size_);
  step.iteration = iter;
  step.forward_count = net_.forward_count();
  const double t = iter + 1.0;
  step.adam_correction =
      static_cast<float>(std::sqrt(1.0 - std::pow(static_cast<double>(momentum2_), t)) /
                         (1.0 - std::pow(static_cast<double>(momentum_), t)));
  net_.ops().set_step(step);
  replay_.run(net_.ops(), [&] {
    for (const GroupState& state : groups_) {
      if (state.rule.lr_mult == 0 || !state.group->gradient) continue;
      net_.ops().update(state.rule, state.group->gradient, state.history, state.group->value, {});
    }
  });
  net_.params_changed();
}

std::vector<Updater::Place> Updater::places() const {
  const std::vector<NetParam>& params = net_.params();
  std::vector<Place> out;
  for (int copy = 0; copy < history_count(rule_); ++copy) {
    for (size_t i = 0; i < params.size(); ++i) {
      out.push_back({static_cast<int>(i), Tensor{nullptr, TensorDesc{params[i].value.shape()}}});
    }
  }
  for (const GroupState& state : groups_) {
    for (int member : state.group->members) {
      const Tensor& value = params[static_cast<size_t>(member)].value;
      const int64_t offset = value.f32() - state.group->value.f32();
      for (size_t copy = 0; copy < state.history.size(); ++copy) {
        out[copy * params.size() + static_cast<size_t>(member)].tensor =
            part(state.history[copy], offset, value.shape());
      }
    }
  }
  return out;
}

std::vector<HostBlob> Updater::history() const {
  std::vector<HostBlob> blobs;
  for (const Place& place : places()) {
    HostBlob blob{.shape = place.tensor.shape(), .data = {}, .diff = {}};
    blob.data.resize(static_cast<size_t>(blob.shape.count()));
    if (place.tensor) net_.ops().download(place.tensor, blob.data.data());
    blobs.push_back(std::move(blob));
  }
  return blobs;
}

void Updater::set_history(const std::vector<HostBlob>& blobs) {
  const std::vector<Place> all = places();
  require(blobs.size() == all.size(), "the state holds ", blobs.size(),
          " history blobs, this solver and net need ", all.size(),
          ": it belongs to another net or solver type");
  for (size_t i = 0; i < all.size(); ++i) {
    const NetParam& param = net_.params()[static_cast<size_t>(all[i].param)];
    require(same_shape(blobs[i].shape, param.value.shape()), "history blob ", i, " has shape ",
            blobs[i].shape, ", parameter ", param.index, " of layer \"", param.owner, "\" has ",
            param.value.shape());
    if (all[i].tensor) net_.ops().upload(blobs[i].data.data(), all[i].tensor);
  }
}

}  // namespace crema
