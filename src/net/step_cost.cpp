// The count itself: a sum over layers of sizes of blobs and parameters.
#include "net/step_cost.h"

#include <set>
#include <string>

namespace crema {
namespace {

constexpr double kBytes = sizeof(float);

const std::set<std::string>& part_of_neighbour() {
  static const std::set<std::string> types = {"ReLU",    "ReLU6",   "ELU",     "PReLU", "Scale",
                                              "Bias",    "Input",   "Dropout", "Split", "Flatten",
                                              "Reshape", "Silence", "Accuracy"};
  return types;
}

/// Backward needs nothing but the tops' gradients.
bool backward_is_linear(const LayerParameter& layer) {
  const std::string& type = layer.type();
  return type == "Concat" || type == "Slice" ||
         (type == "Eltwise" && layer.eltwise_param().operation() == EltwiseParameter::SUM) ||
         (type == "Pooling" && layer.pooling_param().pool() == PoolingParameter::AVE);
}

struct Sizes {  // in elements
  double bottoms = 0, wanted_bottoms = 0, tops = 0, params = 0, weights = 0, wanted_params = 0;
};

Sizes sizes_of(const Net& net, const LayerParameter& layer) {
  Sizes sizes;
  for (const std::string& bottom : layer.bottom()) {
    const auto count = static_cast<double>(net.blob_shape(bottom).count());
    sizes.bottoms += count;
    if (net.wants_gradient(bottom)) sizes.wanted_bottoms += count;
  }
  for (const std::string& top : layer.top()) {
    sizes.tops += static_cast<double>(net.blob_shape(top).count());
  }
  const int index = net.layer_index(layer.name());
  for (int i = 0; index >= 0; ++i) {
    const int param = net.param_of(index, i);
    if (param < 0) break;
    const NetParam& p = net.params()[static_cast<size_t>(param)];
    const auto count = static_cast<double>(p.value.count());
    sizes.params += count;
    if (i == 0) sizes.weights = count;
    if (p.needs_gradient) sizes.wanted_params += count;
  }
  return sizes;
}

/// How often each weight is used in one forward pass; 0 where a layer is not counted.
double uses_of_weights(const Net& net, const LayerParameter& layer) {
  if (layer.type() == "InnerProduct") {
    const double outputs = layer.inner_product_param().num_output();
    return static_cast<double>(net.blob_shape(layer.top(0)).count()) / outputs;
  }
  const bool is_deconvolution = layer.type() == "Deconvolution";
  if (layer.type() != "Convolution" && !is_deconvolution) return 0;
  const Shape shape = net.blob_shape(is_deconvolution ? layer.bottom(0) : layer.top(0));
  return static_cast<double>(shape.count()) / static_cast<double>(shape[1]) * layer.bottom_size();
}

}  // namespace

LayerCost count_layer(const Net& net, const LayerParameter& layer) {
  LayerCost cost;
  const Sizes sizes = sizes_of(net, layer);
  cost.forward_operations = 2 * sizes.weights * uses_of_weights(net, layer);
  const int gradients = (sizes.wanted_params > 0) + (sizes.wanted_bottoms > 0);
  cost.backward_operations = cost.forward_operations * gradients;
  if (part_of_neighbour().count(layer.type()) != 0) return cost;
  double forward = sizes.bottoms + sizes.tops + sizes.params, backward = 0;
  if (gradients > 0) {
    backward = sizes.tops + sizes.wanted_bottoms + sizes.params + sizes.wanted_params;
    if (!backward_is_linear(layer)) backward += sizes.bottoms;
  }
  if (layer.type() == "BatchNorm" && gradients > 0) {
    forward += sizes.bottoms;  // statistics first, then what they are for
    backward += sizes.bottoms + sizes.tops;
  }
  cost.forward_bytes = kBytes * forward;
  cost.backward_bytes = kBytes * backward;
  return cost;
}

StepCost count_cost(const Net& net, const NetParameter& param) {
  StepCost cost;
  for (const LayerParameter& layer : param.layer()) {
    const LayerCost one = count_layer(net, layer);
    cost.forward_operations += one.forward_operations;
    cost.training_operations += one.forward_operations + one.backward_operations;
    cost.forward_bytes += one.forward_bytes;
    cost.training_bytes += one.forward_bytes + one.backward_bytes;
    if (layer.type() == "BatchNorm") cost.norm_bytes += one.forward_bytes + one.backward_bytes;
  }
  for (const NetParam& p : net.params()) {
    if (p.needs_gradient) cost.update_bytes += 5 * kBytes * static_cast<double>(p.value.count());
  }
  cost.packing_bytes = 2.0 * static_cast<double>(net.memory().packed);
  return cost;
}

}  // namespace crema
