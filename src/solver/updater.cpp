// Update rules per parameter group; the formulas themselves are Ops::update.
#include "solver/updater.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/trace.h"
#include "ops/kernels/layer_rates.h"
#include "ops/kernels/sum_of_squares.h"
#include "solver/schedules.h"

namespace crema {
namespace {

constexpr int64_t kPiece = 4096;  // elements that one partial sum of a norm covers

const std::vector<std::pair<std::string, Rule>>& rules() {
  static const std::vector<std::pair<std::string, Rule>> table = {
      {"SGD", Rule::sgd},         {"Nesterov", Rule::nesterov}, {"AdaGrad", Rule::adagrad},
      {"RMSProp", Rule::rmsprop}, {"AdaDelta", Rule::adadelta}, {"Adam", Rule::adam},
      {"AdamW", Rule::adam},      {"LAMB", Rule::adam},         {"LARS", Rule::sgd}};
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

SolverParameter without_nets(const SolverParameter& param) {
  SolverParameter out = param;
  for (const char* nets : {"net_param", "train_net_param", "test_net_param"}) {
    out.GetReflection()->ClearField(&out, out.GetDescriptor()->FindFieldByName(nets));
  }
  return out;
}

void check_larc(const SolverParameter& param, ErrorList& errors) {
  const bool is_own = extra_of(param.type()) != Extra::none;
  const auto check = [&](bool ok, const std::string& text) {
    if (!ok) errors.add(Error(text));
  };
  check(!param.larc() || !is_own, str("larc is for Caffe's solver types, not for ", param.type()));
  check(!param.larc_turbo(), "larc_turbo: true is not there; larc works without it");
  check(param.larc_policy() == "scale" || param.larc_policy() == "clip",
        str("larc_policy must be scale or clip, not ", param.larc_policy()));
  check(!is_own || param.regularization_type() == "L2",
        str("regularization_type must be L2 for ", param.type()));
}

}  // namespace

Extra extra_of(const std::string& type) {
  if (type == "AdamW") return Extra::adamw;
  if (type == "LARS") return Extra::lars;
  return type == "LAMB" ? Extra::lamb : Extra::none;
}

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
  check_larc(param, errors);
  check_schedules(param, errors);
  check(param.iter_size() >= 1, str("iter_size must be at least 1, not ", param.iter_size()));
  errors.throw_if_any();
}

Updater::Updater(const SolverParameter& param, Net& net, Communicator* group)
    : net_(net),
      group_(group),
      param_(without_nets(param)),
      rule_(parse_rule(param.type())),
      extra_(extra_of(param.type())) {
  const bool goes_by_member = extra_ == Extra::lars || extra_ == Extra::lamb || param_.larc();
  int64_t partial_sums = 0;
  for (const Net::Group& group : net.groups()) {
    GroupState state{.group = &group,
                     .rule = {},
                     .buffer = nullptr,
                     .history = {},
                     .scratch = nullptr,
                     .members = {}};
    state.rule = {.rule = rule_,
                  .lr_mult = group.lr_mult,
                  .decay = param.weight_decay() * group.decay_mult,
                  .l1 = param.regularization_type() == "L1",
                  .momentum = param.momentum(),
                  .momentum2 = param.momentum2(),
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
    if (extra_ == Extra::lamb) {
      state.scratch =
          net.ops().allocate(static_cast<size_t>(count) * sizeof(float), Memory::device);
    }
    for (const int index : group.members) {
      partial_sums += 2 * pieces(net.params()[static_cast<size_t>(index)].value.count());
      if (goes_by_member && group.gradient) state.members.push_back(member(state, index));
    }
    groups_.push_back(std::move(state));
  }
  partial_sums_ =
      net.ops().allocate(static_cast<size_t>(partial_sums) * sizeof(float), Memory::device);
}

const std::vector<double>& Updater::sums_of_squares() const {
  int64_t total = 0;
  for (const CTensor& x : norms_.tensors) {
    float* sums = static_cast<float*>(partial_sums_.get()) + total;
    run_rows(net_.ops(),
             SumOfSquares{.x = x.f32(), .sums = sums, .count = x.count(), .piece = kPiece},
             pieces(x.count()), kPiece);
    total += pieces(x.count());
  }
  norms_.pieces.resize(static_cast<size_t>(total));
  if (total > 0) {
    net_.ops().download({partial_sums_.get(), TensorDesc{Shape{total}}}, norms_.pieces.data());
  }
  norms_.sums.clear();
  size_t at = 0;
  for (const CTensor& x : norms_.tensors) {
    double sum = 0;
    for (int64_t i = 0; i < pieces(x.count()); ++i) sum += norms_.pieces[at++];
    norms_.sums.push_back(sum);
  }
  return norms_.sums;
}

double Updater::gradient_norm() const {
  norms_.tensors.clear();
  for (const GroupState& state : groups_) {
    if (state.group->gradient) norms_.tensors.emplace_back(state.group->gradient);
  }
  double sum = 0;
  for (const double part : sums_of_squares()) sum += part;
  return std::sqrt(sum);
}

/// norm: of the gradients as they are to be used.
float Updater::clip_factor(double norm) const {
  const float clip = param_.clip_gradients();
  if (clip < 0) return 1;
  require(std::isfinite(norm), "the L2 norm of the gradients is ", norm,
          ", there is nothing to clip");
  if (norm <= clip) return 1;
  const double factor = clip / norm;
  LOG_IF(INFO, group_ == nullptr || group_->rank() == 0)
      << "Gradient clipping: scaling down gradients (L2 norm " << norm << " > " << clip
      << ") by scale factor " << factor;
  return static_cast<float>(factor);
}

float Updater::forward_backward_and_sum() {
  if (ranks() == 1) return net_.forward_backward();
  are_sums_begun_ = true;
  return net_.forward_backward([this](const Tensor& part) { group_->begin_sum(net_.ops(), part); });
}

void Updater::join_gradients() {
  if (ranks() == 1) return;
  const TraceSpan span("update", "sum over ranks", true);
  if (std::exchange(are_sums_begun_, false)) return group_->finish_sums(net_.ops());
  for (const GroupState& state : groups_) {
    if (state.group->gradient) group_->sum(net_.ops(), state.group->gradient);
  }
}

void Updater::update(int iter, float rate, LossScale& scale) {
  join_gradients();
  const TraceSpan span("update", "update", true);
  const float used_scale = scale.value();
  const bool needs_norm = param_.clip_gradients() >= 0 || scale.is_in_use();
  const double norm = needs_norm ? gradient_norm() / ranks() / used_scale : 0;
  if (!scale.allows_step(iter, norm, group_ == nullptr || group_->rank() == 0)) {
    StepScalars step = net_.ops().step();
    step.loss_scale = scale.value();
    return net_.ops().set_step(step);
  }
  const float momentum = momentum_at(param_, iter, rate), decay = weight_decay_at(param_, iter);
  StepScalars step;
  step.rate = rate;
  step.grad_scale =
      clip_factor(norm) / (static_cast<float>(param_.iter_size() * ranks()) * used_scale);
  step.loss_scale = scale.value();
  step.iteration = iter;
  step.forward_count = net_.forward_count();
  const double t = iter + 1.0;
  step.adam_correction =
      static_cast<float>(std::sqrt(1.0 - std::pow(static_cast<double>(param_.momentum2()), t)) /
                         (1.0 - std::pow(static_cast<double>(momentum), t)));
  net_.ops().set_step(step);
  const auto walk = [&] {
    for (const GroupState& state : groups_) {
      if (state.rule.lr_mult == 0 || !state.group->gradient) continue;
      UpdateRule rule = state.rule;
      rule.momentum = momentum;
      rule.decay = decay * state.group->decay_mult;
      if (extra_ == Extra::lamb) {
        update_lamb(state, rule, rate);
      } else if (extra_ == Extra::adamw) {
        update_adamw(state, rule);
      } else if (extra_ == Extra::lars || param_.larc()) {
        update_by_layer(state, rule, step);
      } else {
        net_.ops().update(rule, state.group->gradient, state.history, state.group->value, {});
      }
    }
  };
  const bool has_fixed_numbers = extra_ == Extra::none && !param_.larc() &&
                                 param_.momentum_policy() == "fixed" &&
                                 param_.weight_decay_policy() == "fixed";
  if (has_fixed_numbers) {
    replay_.run(net_.ops(), walk);
  } else {
    walk();
  }
  net_.params_changed();
}

Updater::Member Updater::member(const GroupState& state, int param) const {
  const Tensor& value = net_.params()[static_cast<size_t>(param)].value;
  Member out{.value = value,
             .gradient = {},
             .history = {},
             .offset = value.f32() - state.group->value.f32()};
  out.gradient = part(state.group->gradient, out.offset, value.shape());
  for (const Tensor& history : state.history) {
    out.history.push_back(part(history, out.offset, value.shape()));
  }
  return out;
}

void Updater::update_by_layer(const GroupState& state, UpdateRule rule, const StepScalars& step) {
  norms_.tensors.clear();
  for (const Member& one : state.members) {
    norms_.tensors.emplace_back(one.value);
    norms_.tensors.emplace_back(one.gradient);
  }
  const std::vector<double>& sums = sums_of_squares();
  const float lr_mult = rule.lr_mult;
  for (size_t i = 0; i < state.members.size(); ++i) {
    const Member& one = state.members[i];
    const double w = std::sqrt(sums[2 * i]), g = std::sqrt(sums[2 * i + 1]) * step.grad_scale;
    rule.lr_mult = lr_mult;
    if (w > 0 && g > 0 && param_.larc()) {
      const double ratio = (1.0 - rule.momentum) * param_.larc_eta() * w / g;
      const bool is_clip = param_.larc_policy() == "clip";
      rule.lr_mult = static_cast<float>(
          is_clip && step.rate > 0 ? std::min<double>(step.rate, ratio) / step.rate : ratio);
    } else if (w > 0 && g > 0 && one.value.shape().axes() > 1) {
      rule.lr_mult = static_cast<float>(lr_mult * param_.larc_eta() * w / (g + rule.decay * w));
    }
    net_.ops().update(rule, one.gradient, one.history, one.value, {});
  }
}

void Updater::update_adamw(const GroupState& state, UpdateRule rule) {
  Ops& ops = net_.ops();
  const Tensor& value = state.group->value;
  if (rule.decay != 0) {
    run(ops, DecayWeights{value.f32(), &ops.step_scalars()->rate, rule.lr_mult * rule.decay},
        value.count());
  }
  rule.decay = 0;
  ops.update(rule, state.group->gradient, state.history, value, {});
}

void Updater::update_lamb(const GroupState& state, UpdateRule rule, float rate) {
  Ops& ops = net_.ops();
  const Tensor& value = state.group->value;
  const Tensor step{state.scratch.get(), TensorDesc{value.shape()}};
  const float lr_mult = rule.lr_mult, decay = rule.decay;
  rule.lr_mult = 1;
  rule.decay = 0;
  ops.update(rule, state.group->gradient, state.history, step, {});
  run(ops, LambDirection{value.f32(), step.f32(), &ops.step_scalars()->rate, decay}, value.count());
  norms_.tensors.clear();
  for (const Member& one : state.members) {
    norms_.tensors.emplace_back(one.value);
    norms_.tensors.emplace_back(part(step, one.offset, one.value.shape()));
  }
  const std::vector<double>& sums = sums_of_squares();
  for (size_t i = 0; i < state.members.size(); ++i) {
    const Member& one = state.members[i];
    const double w = std::sqrt(sums[2 * i]), u = std::sqrt(sums[2 * i + 1]);
    const bool adapts = w > 0 && u > 0 && one.value.shape().axes() > 1;
    // The direction has the rate in it, which its norm must not have.
    const double ratio = adapts ? w / u * rate : 1;
    run(ops,
        LambStep{one.value.f32(), step.f32() + one.offset, static_cast<float>(lr_mult * ratio)},
        one.value.count());
  }
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
