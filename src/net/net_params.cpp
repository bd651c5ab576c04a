// Parameters: stored in one contiguous arena per (lr_mult, decay_mult), filled, shared with other
// nets, loaded, saved.
#include <glog/logging.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "layers/filler.h"
#include "net/net_impl.h"

namespace crema {
namespace {

/// Padding between parameters keeps each 64-byte aligned; its values stay 0.
int64_t padded(int64_t count) { return (count + 15) / 16 * 16; }

/// Legacy files have four sizes: 1,1,1,K stands for K and 1,1,M,K for M,K.
bool shapes_agree(const Shape& file, const Shape& own) {
  if (file == own) return true;
  if (file.axes() != 4 || own.axes() > 4) return false;
  for (int i = 1; i <= 4; ++i) {
    const int64_t wanted = i <= own.axes() ? own[own.axes() - i] : 1;
    if (file[4 - i] != wanted) return false;
  }
  return true;
}

/// BVLC: statistics whose factor is 0 (NVCaffe writes it so) count as empty, without a word.
void warn_of_lost_statistics(const std::string& type, const LayerWeights& source,
                             const std::string& where) {
  if (type != "BatchNorm" || source.blobs.size() < 3) return;
  const std::vector<float>& factor = source.blobs[2].data;
  const std::vector<float>& variance = source.blobs[1].data;
  const bool is_filled =
      std::any_of(variance.begin(), variance.end(), [](float v) { return v != 0; });
  if (factor.size() != 1 || factor[0] != 0 || !is_filled) return;
  LOG(WARNING) << where << ": the factor of the statistics (parameter 2) is 0, so they count as "
               << "empty; if they are means and variances, as NVCaffe writes them, set it to 1";
}

}  // namespace

void Net::Impl::make_params() {
  std::map<std::tuple<bool, bool, float, float>, int> group_of;
  std::vector<std::vector<int>> members;
  for (size_t p = 0; p < graph.params.size(); ++p) {
    const ParamSlot& slot = graph.params[p];
    params.push_back({slot.owner,
                      slot.node,
                      slot.index,
                      slot.lr_mult,
                      slot.decay_mult,
                      slot.learnable,
                      slot.needs_gradient,
                      {},
                      {}});
    if (parent != nullptr) {
      Impl& other = *parent->impl_;
      const int layer = parent->impl_->node_named(slot.owner);
      const int theirs = layer < 0 ? -1 : parent->param_of(layer, slot.index);
      if (theirs >= 0) {
        require(other.params[theirs].value.shape() == slot.shape,
                place_of(graph.nodes[slot.node].param, options.file), ": parameter ", slot.index,
                " has the shape ", slot.shape, " here and ", other.params[theirs].value.shape(),
                " in the train net");
        params.back().value = other.params[theirs].value;
        continue;
      }
    }
    const auto key =
        std::make_tuple(slot.learnable, slot.needs_gradient, slot.lr_mult, slot.decay_mult);
    const auto [it, fresh] = group_of.emplace(key, static_cast<int>(members.size()));
    if (fresh) members.emplace_back();
    members[it->second].push_back(static_cast<int>(p));
  }
  for (const std::vector<int>& list : members) {
    int64_t count = 0;
    for (int p : list) count += padded(graph.params[p].shape.count());
    const bool has_gradient = options.train && params[list[0]].needs_gradient;
    const size_t bytes = static_cast<size_t>(count) * sizeof(float);
    owned.push_back(ops->allocate(bytes, Memory::device));
    const Tensor value{owned.back().get(), {Shape{count}, DType::f32, Layout::nchw}};
    Tensor gradient;
    if (has_gradient) {
      owned.push_back(ops->allocate(bytes, Memory::device));
      gradient = {owned.back().get(), value.desc};
      report.gradients += bytes;
    }
    report.parameters += bytes;
    int64_t offset = 0;
    for (int p : list) {
      const TensorDesc desc{graph.params[p].shape, DType::f32, Layout::nchw};
      params[p].value = {value.f32() + offset, desc};
      if (has_gradient) params[p].gradient = {gradient.f32() + offset, desc};
      offset += padded(desc.count());
    }
    if (has_gradient)
      groups.push_back(
          {params[list[0]].lr_mult, params[list[0]].decay_mult, value, gradient, list});
  }
  if (parent != nullptr) params_version = parent->impl_->params_version;
  fill_params();
}

void Net::Impl::fill_params() {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    for (size_t i = 0; i < node.params.size(); ++i) {
      Param& param = node.layer->params()[i];
      const NetParam& stored = params[node.params[i]];
      param.value = stored.value;
      param.value.desc.shape = param.shape;
      const ParamSlot& slot = graph.params[node.params[i]];
      const bool owns = slot.node == static_cast<int>(n) && slot.index == static_cast<int>(i);
      const bool is_shared =
          parent != nullptr && stored.value.data != nullptr && is_parents(stored.value.data);
      if (!owns || is_shared) continue;
      RandomStream random(mix_key(mix_key(options.seed, hash_name(node.param.name().c_str())), i));
      std::vector<float> values(static_cast<size_t>(param.shape.count()));
      // A fork's filler does not matter to a net that is used with weights.
      if (!options.train && !is_filler_type(param.filler.type())) {
        LOG(WARNING) << place_of(node.param, options.file) << ": filler \"" << param.filler.type()
                     << "\" is not built in: parameter " << i << " is 0 unless weights are loaded";
        param.filler.Clear();
      }
      try {
        fill_values(param.filler, param.shape, random, values);
      } catch (const Error& error) {
        throw error.at(place_of(node.param, options.file));
      }
      ops->upload(values.data(), stored.value);
    }
  }
}

bool Net::Impl::is_parents(const void* data) const {
  return std::any_of(parent->impl_->params.begin(), parent->impl_->params.end(),
                     [&](const NetParam& p) { return p.value.data == data; });
}

/// Of layers with one name, the one with parameters (at most one has some); else the first.
int Net::Impl::node_named(const std::string& name) const {
  int found = -1;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.param.name() != name || node.is_convert) continue;
    if (!node.params.empty()) return static_cast<int>(n);
    if (found < 0) found = static_cast<int>(n);
  }
  return found;
}

const std::vector<NetParam>& Net::params() const { return impl_->params; }
const std::vector<Net::Group>& Net::groups() const { return impl_->groups; }

std::vector<float> Net::param_values(int index) const {
  const Tensor& value = impl_->params[index].value;
  std::vector<float> values(static_cast<size_t>(value.count()));
  impl_->ops->download(value, values.data());
  return values;
}

std::vector<float> Net::param_gradient(int index) const {
  const NetParam& param = impl_->params[index];
  if (!param.gradient) return std::vector<float>(static_cast<size_t>(param.value.count()));
  return impl_->read_gradient(param.gradient);
}

void Net::set_param_values(int index, const std::vector<float>& values) {
  const Tensor& value = impl_->params[index].value;
  require(static_cast<int64_t>(values.size()) == value.count(), "parameter ",
          impl_->params[index].index, " of layer \"", impl_->params[index].owner, "\" holds ",
          value.count(), " values, got ", values.size());
  impl_->ops->upload(values.data(), value);
  params_changed();
}

int Net::param_of(int layer, int index) const {
  const std::vector<int>& own = impl_->graph.nodes[layer].params;
  return index >= 0 && index < static_cast<int>(own.size()) ? own[index] : -1;
}

void Net::params_changed() { ++*impl_->params_version; }

/// The Scale layer of the net that works on BatchNorm n's top, unless the file has it.
int Net::Impl::scale_behind(int n, const WeightsFile& weights) const {
  const LayerParameter& norm = graph.nodes[n].param;
  for (size_t i = static_cast<size_t>(n) + 1; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool reads = node.param.bottom_size() == 1 && node.param.bottom(0) == norm.top(0);
    if (node.is_convert || !reads) continue;
    const bool is_stored =
        std::any_of(weights.layers.begin(), weights.layers.end(), [&](const LayerWeights& layer) {
          return layer.name == node.param.name() && !layer.blobs.empty();
        });
    const bool fits = node.param.type() == "Scale" && node.params.size() == 2 && !is_stored;
    return fits ? static_cast<int>(i) : -1;
  }
  return -1;
}

/// Sets the parameters of node n; nullptr and missing blobs leave what is there.
void Net::Impl::fill(int n, const BlobPointers& blobs, const std::string& where) {
  const Node& node = graph.nodes[n];
  require(blobs.size() == node.params.size(), where, ": the file has ", blobs.size(),
          " parameters, the net has ", node.params.size(),
          node.param.type() == "BatchNorm" && blobs.size() == 5
              ? "; batch_norm_param { scale_bias: true } has 5"
              : "; to start this layer afresh, rename it in the net");
  const auto is_there = [&](size_t i) { return blobs[i] && !blobs[i]->is_missing(); };
  for (size_t i = 0; i < node.params.size(); ++i) {
    if (!is_there(i)) continue;
    const Shape& own = node.layer->params()[i].shape;
    require(shapes_agree(blobs[i]->shape, own), where, ": parameter ", i, " has the shape ",
            blobs[i]->shape, " in the file and ", own,
            " in the net; to start this layer afresh, rename it in the net");
  }
  for (size_t i = 0; i < node.params.size(); ++i) {
    if (is_there(i)) ops->upload(blobs[i]->data.data(), params[node.params[i]].value);
  }
}

/// How many layers with parameters the file left as they were, and which: of the file's own layers
/// a reader sees only those that the net lacks.
void Net::Impl::tell_filled(const std::vector<uint8_t>& is_filled, const WeightsFile& weights,
                            const std::string& file) const {
  std::vector<std::string> left;
  size_t all = 0;
  for (const Node& node : graph.nodes) {
    if (node.params.empty()) continue;
    ++all;
    const bool is_whole = std::all_of(node.params.begin(), node.params.end(),
                                      [&](int p) { return is_filled[static_cast<size_t>(p)]; });
    if (!is_whole) left.push_back(node.param.name());
  }
  if (left.empty()) return;
  const bool has_blobs =
      std::any_of(weights.layers.begin(), weights.layers.end(),
                  [](const LayerWeights& layer) { return !layer.blobs.empty(); });
  const size_t shown = std::min<size_t>(left.size(), 5);
  std::string names = join(std::vector(left.begin(), left.begin() + static_cast<long>(shown)));
  if (shown < left.size()) names += str(" and ", left.size() - shown, " more");
  const std::string text = str(file, ": fills ", all - left.size(), " of the ", all,
                               " layers with parameters; left as they were: ", names);
  if (left.size() < all) {
    LOG(INFO) << text;
  } else {
    LOG(WARNING) << text
                 << (has_blobs ? "; no layer has a name of the net's"
                               : "; the file's layers hold no values");
  }
}

int Net::load_weights(const WeightsFile& weights, const std::string& file) {
  int filled = 0;
  std::vector<uint8_t> is_filled(impl_->params.size());
  const auto mark = [&](int n) {
    for (const int p : impl_->graph.nodes[n].params) is_filled[static_cast<size_t>(p)] = 1;
  };
  for (const LayerWeights& source : weights.layers) {
    const int n = impl_->node_named(source.name);
    if (n < 0) {
      LOG(INFO) << "Ignoring source layer " << source.name;
      continue;
    }
    const Node& node = impl_->graph.nodes[n];
    if (source.blobs.empty() && node.params.empty()) continue;
    const std::string where = str(file, ": layer \"", source.name, "\"");
    if (source.blobs.empty()) continue;
    BlobPointers blobs = ordered_blobs(node.param, source);
    if (blobs.size() == 5 && node.params.size() == 3) {
      if (const int scale = impl_->scale_behind(n, weights); scale >= 0) {
        impl_->fill(scale, {blobs[3], blobs[4]}, where);
        mark(scale);
        blobs.resize(3);
      }
    } else if (blobs.size() == 3 && node.params.size() == 5) {
      const LayerWeights* scale = scale_of_file(source, weights);
      const bool is_left_over = scale && impl_->node_named(scale->name) < 0;
      for (size_t i = 0; i < 2; ++i) {
        blobs.push_back(is_left_over && i < scale->blobs.size() ? &scale->blobs[i] : nullptr);
      }
    }
    impl_->fill(n, blobs, where);
    mark(n);
    warn_of_lost_statistics(node.param.type(), source, where);
    ++filled;
  }
  params_changed();
  impl_->tell_filled(is_filled, weights, file);
  return filled;
}

std::vector<HostBlob> Net::saved_blobs(int layer, bool with_gradients, bool owned_only) const {
  const int index = impl_->saved_nodes[layer];
  if (index < 0) return {};
  const Node& node = impl_->graph.nodes[index];
  std::vector<HostBlob> blobs;
  for (size_t i = 0; i < node.params.size(); ++i) {
    const ParamSlot& slot = impl_->graph.params[node.params[i]];
    HostBlob blob;
    blob.shape = node.layer->params()[i].shape;
    if (!owned_only || (slot.node == index && slot.index == static_cast<int>(i))) {
      blob.data = param_values(node.params[i]);
      if (with_gradients) blob.diff = param_gradient(node.params[i]);
    }
    blobs.push_back(std::move(blob));
  }
  return blobs;
}

}  // namespace crema
