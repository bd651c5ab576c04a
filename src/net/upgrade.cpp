// The upgrades in order. Each one looks for its old syntax, leaves files without it alone and
// writes one line to the log.
#include "net/upgrade.h"

#include <glog/logging.h>

#include "base/error.h"
#include "net/upgrade_steps.h"

namespace crema {
namespace {

void refuse_mixed(const NetParameter& net, const std::string& file) {
  if (net.layer().empty() || net.layers().empty()) return;
  auto place = [&](const auto& layer) {
    return layer.source_location().empty() ? file : layer.source_location();
  };
  fail(place(net.layers(0)), ": `layers` (old syntax) stands beside `layer` (", place(net.layer(0)),
       "): a net uses one of the two");
}

// Moves what old files say about pictures in data_param and its kin. Where transform_param has the
// field too, that one counts.
template <class Param>
bool move_transform_fields(Param* param, LayerParameter* layer) {
  if (!param->has_scale() && !param->has_mean_file() && !param->has_crop_size() &&
      !param->has_mirror()) {
    return false;
  }
  TransformationParameter* transform = layer->mutable_transform_param();
  if (param->has_scale() && !transform->has_scale()) transform->set_scale(param->scale());
  if (param->has_mean_file() && !transform->has_mean_file()) {
    transform->set_mean_file(param->mean_file());
  }
  if (param->has_crop_size() && !transform->has_crop_size()) {
    transform->set_crop_size(param->crop_size());
  }
  if (param->has_mirror() && !transform->has_mirror()) transform->set_mirror(param->mirror());
  param->clear_scale();
  param->clear_mean_file();
  param->clear_crop_size();
  param->clear_mirror();
  return true;
}

// BVLC: moved in old `layers` only; inside a `layer` these fields are ignored without a word.
void upgrade_transform_fields(NetParameter& net, const std::string& file) {
  std::string moved;
  for (LayerParameter& layer : *net.mutable_layer()) {
    bool any = false;
    if (layer.has_data_param()) any |= move_transform_fields(layer.mutable_data_param(), &layer);
    if (layer.has_image_data_param()) {
      any |= move_transform_fields(layer.mutable_image_data_param(), &layer);
    }
    if (layer.has_window_data_param()) {
      any |= move_transform_fields(layer.mutable_window_data_param(), &layer);
    }
    if (any) moved += (moved.empty() ? "" : ", ") + layer.name();
  }
  if (moved.empty()) return;
  LOG(WARNING) << file << ": scale, mean_file, crop_size and mirror are taken as fields of "
               << "transform_param (layers: " << moved << ")";
}

void drop_unused_sizes(NetParameter& net) {
  net.clear_input_dim();
  if (net.input().empty()) net.clear_input_shape();
}

void upgrade_inputs(NetParameter& net, const std::string& file) {
  const int inputs = net.input_size(), shapes = net.input_shape_size(), dims = net.input_dim_size();
  if (!inputs && !shapes && !dims) return;
  if (!inputs || (shapes && dims)) {  // BVLC: the same without a word
    LOG(WARNING) << file << ": "
                 << (inputs ? "input_shape is taken, input_dim" : "a size without an input")
                 << " is left out";
    drop_unused_sizes(net);
    return upgrade_inputs(net, file);
  }
  require(!shapes || shapes == inputs, file, ": has ", inputs, " input and ", shapes,
          " input_shape: as many are needed");
  require(!dims || dims == 4 * inputs, file, ": has ", inputs, " input and ", dims,
          " input_dim: 4 are needed for each input");
  if (shapes || dims) {
    LayerParameter layer;
    layer.set_name("input");
    layer.set_type("Input");
    *layer.mutable_top() = net.input();
    auto* param = layer.mutable_input_param();
    *param->mutable_shape() = net.input_shape();
    for (int i = 0; i < dims; ++i) {
      if (i % 4 == 0) param->add_shape();
      param->mutable_shape(i / 4)->add_dim(net.input_dim(i));
    }
    net.add_layer()->Swap(&layer);
    for (int i = net.layer_size() - 1; i > 0; --i) net.mutable_layer()->SwapElements(i, i - 1);
    LOG(WARNING) << file << ": the input fields are taken as a layer \"input\" of type Input";
  } else {
    LOG(WARNING) << file << ": input \"" << net.input(0) << "\" has no shape and is left out";
  }
  net.clear_input();
  net.clear_input_shape();
  net.clear_input_dim();
}

// Three specs on a BatchNorm come from the time when they kept the solver off the statistics.
void upgrade_batch_norm(NetParameter& net, const std::string& file) {
  int changed = 0;
  for (LayerParameter& layer : *net.mutable_layer()) {
    const int specs = layer.param_size();
    const bool fits = specs == 3 || (specs > 3 && layer.batch_norm_param().scale_bias());
    if (layer.type() != "BatchNorm" || !fits) continue;
    bool any = false;
    for (int i = 0; i < 3; ++i) {
      ParamSpec& spec = *layer.mutable_param(i);
      any |= spec.lr_mult() != 0 || spec.decay_mult() != 0;
      spec.set_lr_mult(0);
      spec.set_decay_mult(0);
    }
    changed += any;
  }
  if (!changed) return;
  LOG(WARNING) << file << ": lr_mult and decay_mult of the statistics of " << changed
               << " BatchNorm layers are taken as 0";
}

std::string modern_solver(SolverParameter::SolverType type) {
  switch (type) {
    case SolverParameter::SGD:
      return "SGD";
    case SolverParameter::NESTEROV:
      return "Nesterov";
    case SolverParameter::ADAGRAD:
      return "AdaGrad";
    case SolverParameter::RMSPROP:
      return "RMSProp";
    case SolverParameter::ADADELTA:
      return "AdaDelta";
    case SolverParameter::ADAM:
      return "Adam";
  }
  return "";
}

}  // namespace

void upgrade_net(NetParameter& net, const std::string& file) {
  refuse_mixed(net, file);
  const bool is_old = !net.layers().empty();
  upgrade_v0(net, file);
  upgrade_v1(net, file);
  upgrade_transform_fields(net, file);
  upgrade_inputs(net, file);
  upgrade_batch_norm(net, file);
  upgrade_forks(net, file);
  if (is_old) align_crops(net, file);
}

void upgrade_weights(NetParameter& net, const std::string& file) {
  net.clear_input();
  net.clear_input_shape();
  net.clear_input_dim();
  upgrade_net(net, file);
}

void upgrade_solver(SolverParameter& solver, const std::string& file) {
  if (solver.has_solver_type()) {
    require(!solver.has_type(), file, ": gives both type (\"", solver.type(),
            "\") and the old solver_type (", SolverParameter::SolverType_Name(solver.solver_type()),
            "), one of them is needed");
    solver.set_type(modern_solver(solver.solver_type()));
    solver.clear_solver_type();
    LOG(WARNING) << file << ": solver_type is taken as type: \"" << solver.type() << "\"";
  }
  if (solver.has_net_param()) upgrade_net(*solver.mutable_net_param(), file);
  if (solver.has_train_net_param()) upgrade_net(*solver.mutable_train_net_param(), file);
  for (NetParameter& net : *solver.mutable_test_net_param()) upgrade_net(net, file);
}

}  // namespace crema
