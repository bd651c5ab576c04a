// How the net around a row is put together and read.
#include "layers/layer_runner.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "io/prototxt.h"
#include "reference/reference.h"

namespace crema {
namespace {

std::vector<float> draw_values(const LayerInput& input, uint64_t key) {
  const auto count = static_cast<size_t>(input.shape.count());
  if (!input.values.empty()) {
    EXPECT_EQ(input.values.size(), count) << "input " << input.name;
    return input.values;
  }
  RandomStream random(key);
  std::vector<float> values(count);
  const double range = static_cast<double>(input.high) - input.low;
  for (size_t i = 0; i < count; ++i) {
    const double u = input.draw == Draw::distinct
                         ? (static_cast<double>(i) + 0.5) / static_cast<double>(count)
                         : random.uniform();
    const double value = input.low + range * u;
    values[i] = static_cast<float>(input.draw == Draw::integer ? std::floor(value) : value);
  }
  if (input.draw == Draw::distinct) {
    for (size_t i = count; i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
  }
  return values;
}

std::vector<float> draw_uniform(size_t count, uint64_t key) {
  RandomStream random(key);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(2 * random.uniform() - 1);
  return values;
}

const std::string& name_in(const Around& around, const std::string& blob) {
  const auto it = around.renamed.find(blob);
  return it == around.renamed.end() ? blob : it->second;
}

LayerParameter* add_layer(NetParameter& net, const std::string& name, const std::string& type) {
  LayerParameter* layer = net.add_layer();
  layer->set_name(name);
  layer->set_type(type);
  return layer;
}

void add_input(Around& around, const LayerInput& input, const LayerRunOptions& options) {
  const bool copied = (options.channels_last || options.in_place) && input.gradient;
  const std::string name = copied ? input.name + "_in" : input.name;
  LayerParameter* layer = add_layer(around.net, name, "Input");
  layer->add_top(name);
  BlobShape* shape = layer->mutable_input_param()->add_shape();
  for (const int64_t dim : input.shape) shape->add_dim(dim);
  if (!copied) return;
  LayerParameter* copy = add_layer(around.net, input.name + "_copy",
                                   options.channels_last ? "HarnessNhwc" : "HarnessCopy");
  copy->add_bottom(name);
  copy->add_top(input.name);
}

/// top 0 of the first layer becomes its bottom 0, for every later layer too.
void put_in_place(Around& around, NetParameter& text) {
  const std::string from = text.layer(0).top(0), to = text.layer(0).bottom(0);
  for (LayerParameter& layer : *text.mutable_layer()) {
    for (std::string& bottom : *layer.mutable_bottom()) {
      if (bottom == from) bottom = to;
    }
    for (std::string& top : *layer.mutable_top()) {
      if (top == from) top = to;
    }
  }
  around.renamed[from] = to;
}

bool is_loss(const LayerParameter& layer, Phase phase) {
  if (!layer_registry().find(layer.type())) return false;
  return make_layer(layer, {.phase = phase})->is_loss();
}

float loss_weight_of(const LayerParameter& layer, int top, Phase phase) {
  if (top < layer.loss_weight_size()) return layer.loss_weight(top);
  return layer.loss_weight_size() == 0 && top == 0 && is_loss(layer, phase) ? 1.0f : 0.0f;
}

/// Finds the outputs of the text and puts a loss on those that are none.
void add_losses(Around& around, const NetParameter& text, const LayerCase& test,
                const LayerRunOptions& options) {
  std::set<std::string> consumed;
  std::map<std::string, float> produced;  // and its loss weight
  for (const LayerParameter& layer : text.layer()) {
    for (const std::string& bottom : layer.bottom()) consumed.insert(bottom);
    for (int top = 0; top < layer.top_size(); ++top) {
      consumed.erase(layer.top(top));
      produced[layer.top(top)] = loss_weight_of(layer, top, test.phase);
    }
  }
  for (const auto& [blob, weight] : produced) {
    if (weight != 0) around.objectives.push_back({.blob = blob, .weight = weight});
    if (consumed.count(blob)) continue;
    around.outputs.push_back(blob);
    const bool skipped =
        std::any_of(test.no_loss.begin(), test.no_loss.end(),
                    [&](const std::string& name) { return name_in(around, name) == blob; });
    if (weight != 0 || !test.backward || skipped) continue;
    std::string bottom = blob;
    if (options.channels_last) {
      LayerParameter* copy = add_layer(around.net, blob + "_out_copy", "HarnessNhwc");
      copy->add_bottom(blob);
      copy->add_top(bottom = blob + "_out");
    }
    LayerParameter* loss = add_layer(around.net, blob + "_loss", "HarnessLoss");
    loss->add_bottom(bottom);
    loss->add_top(blob + "_loss");
    loss->add_loss_weight(1);
    around.objectives.push_back({.blob = blob, .loss_layer = blob + "_loss"});
  }
}

Around build_around(const LayerCase& test, const LayerRunOptions& options) {
  Around around;
  NetParameter text;
  parse_text(test.layer, test.name, &text);
  around.net.set_name(test.name);
  around.net.set_force_backward(test.backward);
  for (const LayerInput& input : test.inputs) add_input(around, input, options);
  if (options.in_place) put_in_place(around, text);
  around.net.mutable_layer()->MergeFrom(text.layer());
  add_losses(around, text, test, options);
  return around;
}

NetOptions net_options(const LayerCase& test, const LayerRunOptions& options) {
  NetOptions out;
  out.phase = test.phase;
  out.train = test.backward;
  out.keep_all = !options.planned;
  out.fuse = options.planned;
  out.force_nchw = !options.channels_last && !options.planned;
  out.log = false;
  out.seed = test.seed;
  out.file = test.name;
  return out;
}

}  // namespace

LayerRunner::LayerRunner(const LayerCase& test, const LayerRunOptions& options)
    : test_(test), options_(options), around_(build_around(test, options)) {
  NetOptions wanted = net_options(test, options);
  wanted.keep = around_.outputs;
  for (const LayerInput& input : test.inputs) wanted.keep.push_back(input_name(input));
  net_ =
      std::make_unique<Net>(around_.net, wanted, options.ops ? options.ops : make_reference_ops());
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    inputs_.push_back(draw_values(test.inputs[i], key(1, i)));
    net_->set_blob(input_name(test.inputs[i]), inputs_[i]);
  }
  set_params();
  set_loss_weights();
  spoil_gradients();
  net_->params_changed();
}

std::string LayerRunner::input_name(const LayerInput& input) const {
  const std::string copied = input.name + "_in";
  for (const LayerParameter& layer : around_.net.layer()) {
    if (layer.name() == copied && layer.type() == "Input") return copied;
  }
  return input.name;
}

void LayerRunner::forward() {
  net_->set_forward_count(0);
  net_->forward();
}

double LayerRunner::objective() const {
  double loss = 0;
  for (const Objective& part : around_.objectives) {
    const std::vector<float> values = net_->blob_values(part.blob);
    for (size_t i = 0; i < values.size(); ++i) {
      loss += static_cast<double>(values[i]) *
              (part.loss_layer.empty() ? part.weight : part.weights[i]);
    }
  }
  return loss;
}

std::vector<int> LayerRunner::params() const {
  std::vector<int> places;
  for (size_t i = 0; i < net_->params().size(); ++i) {
    if (!belongs_to_loss(net_->params()[i])) places.push_back(static_cast<int>(i));
  }
  return places;
}

uint64_t LayerRunner::key(uint64_t purpose, uint64_t index) const {
  return mix_key(test_.seed, mix_key(purpose, index));
}

bool LayerRunner::belongs_to_loss(const NetParam& param) const {
  return std::any_of(around_.objectives.begin(), around_.objectives.end(),
                     [&](const Objective& part) { return part.loss_layer == param.owner; });
}

void LayerRunner::set_params() {
  const std::vector<int> places = params();
  for (size_t i = 0; i < places.size(); ++i) {
    const NetParam& param = net_->params()[static_cast<size_t>(places[i])];
    if (i < test_.params.size() && !test_.params[i].empty()) {
      net_->set_param_values(places[i], test_.params[i]);
    } else if (param.learnable) {
      net_->set_param_values(places[i],
                             draw_uniform(static_cast<size_t>(param.value.count()), key(2, i)));
    }
  }
}

void LayerRunner::set_loss_weights() {
  for (size_t i = 0; i < net_->params().size(); ++i) {
    const NetParam& param = net_->params()[i];
    for (Objective& part : around_.objectives) {
      if (part.loss_layer != param.owner) continue;
      part.weights = draw_uniform(static_cast<size_t>(param.value.count()), key(3, i));
      for (const auto& [blob, weights] : test_.top_gradients) {
        if (name_in(around_, blob) == part.blob) part.weights = weights;
      }
      net_->set_param_values(static_cast<int>(i), part.weights);
    }
  }
}

/// What the first backward must overwrite holds NaN before it.
void LayerRunner::spoil_gradients() {
  for (const int place : params()) {
    const NetParam& param = net_->params()[static_cast<size_t>(place)];
    if (param.gradient && net_->layer_needs_backward(param.layer)) {
      net_->ops().fill(NAN, param.gradient);
    }
  }
}

LayerRun LayerRunner::results() const {
  LayerRun run;
  const auto take = [&](const std::string& blob, const std::string& called) {
    run.shapes[called] = net_->blob_shape(blob);
    run.blobs[called] = net_->blob_values(blob);
  };
  for (const std::string& blob : options_.planned ? around_.outputs : net_->blob_names()) {
    take(blob, blob);
  }
  for (const auto& [called, blob] : around_.renamed) {
    take(blob, called);
    run.shapes.erase(blob);  // the name now holds the top: nothing to compare the bottom with
    run.blobs.erase(blob);
  }
  for (const LayerInput& input : test_.inputs) {
    if (!input.gradient || !test_.backward) continue;
    const auto gradient = net_->blob_gradient(input_name(input));
    if (gradient) {
      run.gradients[input.name] = *gradient;
    } else if (!options_.planned) {  // nothing depends on it
      run.gradients[input.name].assign(static_cast<size_t>(input.shape.count()), 0.0f);
    }
  }
  take_params(run);
  run.loss = objective();
  return run;
}

void LayerRunner::take_params(LayerRun& run) const {
  for (const int place : params()) {
    run.params.push_back(net_->param_values(place));
    const Tensor gradient = net_->params()[static_cast<size_t>(place)].gradient;
    const bool wanted = gradient && test_.backward;
    std::vector<float> values(wanted ? static_cast<size_t>(gradient.count()) : 0);
    if (wanted) net_->ops().download(gradient, values.data());
    run.param_gradients.push_back(values);
  }
}

}  // namespace crema
