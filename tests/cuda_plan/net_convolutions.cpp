// Wires a net and lets its convolution layers plan on an Ops that only writes down what it is asked
// for.
#include "cuda_plan/net_convolutions.h"

#include <algorithm>

#include "base/error.h"
#include "io/prototxt.h"
#include "net/wire.h"

namespace crema {
namespace {

class NoConvolution : public ConvPlan {
 public:
  void weights_changed(CTensor) override {}
  void forward(CTensor, CTensor, CTensor, CTensor, Tensor) override {}
  void backward_data(CTensor, CTensor, Grad) override {}
  void backward_params(CTensor, CTensor, Grad, Grad) override {}
};

class Collector : public Ops {
 public:
  std::vector<ConvDesc> seen;

  std::unique_ptr<ConvPlan> plan(const ConvDesc& desc) override {
    seen.push_back(desc);
    return std::make_unique<NoConvolution>();
  }
  std::string describe() const override { return "collector"; }
  std::optional<std::string> why_not(const ConvDesc&) const override { return std::nullopt; }
  Layout preferred(const ConvDesc&) const override { return Layout::nchw; }
  std::unique_ptr<LinearPlan> plan(const LinearDesc&) override { fail(kWhy); }
  std::unique_ptr<PoolPlan> plan(const PoolDesc&) override { fail(kWhy); }
  std::unique_ptr<NormPlan> plan(const NormDesc&) override { fail(kWhy); }
  std::unique_ptr<LrnPlan> plan(const LrnDesc&) override { fail(kWhy); }
  std::unique_ptr<SoftmaxPlan> plan(const SoftmaxDesc&) override { fail(kWhy); }
  void gemm(bool, bool, float, CTensor, CTensor, Tensor, Write) override { fail(kWhy); }
  void unary(Unary, UnaryArgs, CTensor, Tensor) override { fail(kWhy); }
  void unary_backward(Unary, UnaryArgs, CTensor, CTensor, CTensor, Grad) override { fail(kWhy); }
  void launch(std::string_view, const void*, int64_t) override { fail(kWhy); }
  void reduce(std::string_view, const void*, int64_t, int64_t) override { fail(kWhy); }
  void convert(CTensor, Tensor) override { fail(kWhy); }
  void fill(float, Tensor) override { fail(kWhy); }
  void add(CTensor, Tensor) override { fail(kWhy); }
  void update(const UpdateRule&, CTensor, Tensors, Tensor, Tensor) override { fail(kWhy); }
  const StepScalars* step_scalars() const override { return nullptr; }
  StepScalars step() const override { return {}; }
  void set_step(const StepScalars&) override {}
  void upload(const void*, Tensor) override { fail(kWhy); }
  void download(CTensor, void*) override { fail(kWhy); }
  Buffer allocate(size_t, Memory) override { fail(kWhy); }
  void synchronize() override {}
  Fault* fault() override { return nullptr; }
  std::optional<Fault> take_fault() override { return std::nullopt; }

 private:
  static constexpr const char* kWhy = "only convolutions are collected";
};

bool has_window(const Layer& layer) {
  const std::string& type = layer.param().type();
  return type == "Convolution" || type == "Deconvolution";
}

}  // namespace

std::vector<NetConvolution> net_convolutions(const std::string& file, int64_t batch) {
  NetParameter net = read_net(file);
  // DummyData's sizes belong to the batch that the file has.
  const bool has_own_batch = std::any_of(net.layer().begin(), net.layer().end(),
                                         [](const auto& l) { return l.type() == "DummyData"; });
  for (LayerParameter& layer : *net.mutable_layer()) {
    if (layer.type() != "Input" || has_own_batch) continue;
    for (BlobShape& shape : *layer.mutable_input_param()->mutable_shape()) shape.set_dim(0, batch);
  }
  ErrorList errors;
  const Graph graph = wire(net, {.context = {.phase = TRAIN}, .file = file, .train = true}, errors);
  errors.throw_if_any();
  std::vector<NetConvolution> out;
  Collector collector;
  for (const Node& node : graph.nodes) {
    if (!has_window(*node.layer)) continue;
    const TensorDesc bottom{.shape = graph.values[node.bottoms[0]].shape};
    const TensorDesc top{.shape = graph.values[node.tops[0]].shape};
    const uint8_t need_dx = !out.empty();  // the first has nothing before it that learns
    const std::vector<uint8_t> need_dw(node.params.size(), 1);
    collector.seen.clear();
    node.layer->plan(collector, {.bottom = {&bottom, 1},
                                 .top = {&top, 1},
                                 .need_dx = {&need_dx, 1},
                                 .need_dw = need_dw,
                                 .train = true});
    for (const ConvDesc& desc : collector.seen) {
      const bool is_known = std::any_of(
          out.begin(), out.end(), [&](const NetConvolution& known) { return known.desc == desc; });
      if (!is_known) out.push_back({node.param.name(), desc});
    }
  }
  return out;
}

}  // namespace crema
