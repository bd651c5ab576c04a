// Blobs by name, always in N,C,H,W order whatever the plan chose.
#include "base/error.h"
#include "net/net_impl.h"

namespace crema {
std::vector<float> read_nchw(Ops& ops, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.count()));
  if (tensor.desc.layout == Layout::nchw && tensor.desc.dtype == DType::f32) {
    ops.download(tensor, values.data());
    return values;
  }
  const TensorDesc desc{tensor.desc.shape, DType::f32, Layout::nchw};
  const Buffer staging = ops.allocate(desc.bytes(), Memory::device);
  const Tensor plain{staging.get(), desc};
  ops.convert(tensor, plain);
  ops.download(plain, values.data());
  return values;
}

/// In nchw order and without the loss scale; zeros where there is no such tensor.
std::vector<float> Net::Impl::read_gradient(const Tensor& tensor) const {
  if (!tensor) return std::vector<float>(static_cast<size_t>(tensor.count()));
  std::vector<float> values = read_nchw(*ops, tensor);
  if (loss_scale != 1) {
    for (float& value : values) value /= loss_scale;
  }
  return values;
}

int Net::Impl::value_of(const std::string& blob) const {
  const auto it = blobs.find(blob);
  if (it == blobs.end())
    throw Error(str("there is no blob \"", blob, "\"", did_you_mean(blob, blob_order)));
  return it->second;
}

/// As value_of, but for the blob of an Input layer the version that comes from outside, whatever
/// was written onto it later.
int Net::Impl::own_value_of(const std::string& blob) const {
  for (const auto& [v, memory] : inputs) {
    if (graph.values[v].name == blob) return v;
  }
  return value_of(blob);
}

std::vector<std::string> Net::blob_names() const { return impl_->blob_order; }
bool Net::has_blob(const std::string& name) const { return impl_->blobs.count(name) > 0; }
Shape Net::blob_shape(const std::string& name) const {
  return impl_->graph.values[impl_->value_of(name)].shape;
}

std::vector<float> Net::blob_values(const std::string& name) const {
  const int v = impl_->value_of(name);
  const Value& value = impl_->graph.values[v];
  require(value.kept || impl_->inputs.count(impl_->graph.root(v)) > 0, "blob \"", name,
          "\" was not asked for, so its memory was used for others");
  return read_nchw(*impl_->ops, impl_->data(v));
}

std::optional<std::vector<float>> Net::blob_gradient(const std::string& name) const {
  const Tensor gradient = impl_->gradient(impl_->own_value_of(name));
  if (!gradient) return std::nullopt;
  return impl_->read_gradient(gradient);
}

bool Net::wants_gradient(const std::string& name) const {
  return impl_->graph.values[impl_->own_value_of(name)].wants_gradient;
}

void Net::set_blob(const std::string& name, const std::vector<float>& values) {
  const auto it = impl_->inputs.find(impl_->own_value_of(name));
  require(it != impl_->inputs.end(), "blob \"", name,
          "\" is made by a layer: only blobs of Input layers can be set");
  require(static_cast<int64_t>(values.size()) == it->second.count(), "input \"", name, "\" holds ",
          it->second.count(), " values (shape ", it->second.shape(), "), got ", values.size());
  impl_->ops->upload(values.data(), it->second);
}

const std::vector<std::string>& Net::inputs() const { return impl_->input_names; }
const std::vector<NetOutput>& Net::outputs() const { return impl_->outputs; }

std::vector<std::vector<float>> Net::output_values() const {
  std::vector<std::vector<float>> values;
  for (int v : impl_->output_values) values.push_back(read_nchw(*impl_->ops, impl_->data(v)));
  return values;
}

NetParameter Net::to_proto() const { return impl_->saved_proto; }

}  // namespace crema
