// What splits a pass where the device records: a layer that touches the host in the middle. Where
// the device does not record, the same nets give the same values.
#include <gtest/gtest.h>

#include "io/prototxt.h"
#include "net/net.h"
#include "test_device.h"

namespace crema {
namespace {

/// y = 2x by way of the host, which a recording would refuse.
class HostDoubleLayer : public Layer {
 public:
  using Layer::Layer;
  Shapes infer(const Shapes& bottom) override { return bottom; }
  LayerTraits traits() const override {
    LayerTraits traits;
    traits.backward_reads_bottoms = traits.backward_reads_tops = 0;
    traits.host_only = true;
    return traits;
  }
  void forward(Ops& ops, CTensors bottom, Tensors top) override { twice(ops, bottom[0], top[0]); }
  void backward(Ops& ops, const BackwardArgs& args) override {
    if (args.dbottom[0]) twice(ops, args.dtop[0], args.dbottom[0].t);
  }

 private:
  static void twice(Ops& ops, const CTensor& from, const Tensor& to) {
    std::vector<float> values(static_cast<size_t>(from.count()));
    ops.download(from, values.data());
    for (float& value : values) value *= 2;
    ops.upload(values.data(), to);
  }
};

REGISTER_LAYER("HostDouble", HostDoubleLayer)

std::unique_ptr<Net> net_with(const std::string& middle) {
  NetParameter param;
  parse_text(str(R"(
    layer { name: "in" type: "Input" top: "x" top: "y"
      input_param { shape { dim: 4 dim: 6 } shape { dim: 4 dim: 3 } } }
    layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "a"
      inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
    layer { name: "middle" bottom: "a" top: "b" )",
                 middle, R"( }
    layer { name: "ip2" type: "InnerProduct" bottom: "b" top: "c"
      inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "c" bottom: "y" top: "loss" })"),
             "net", &param);
  NetOptions options;
  options.phase = TRAIN;
  options.train = true;
  options.log = false;
  options.seed = 8;
  auto net = std::make_unique<Net>(param, options, make_ops(test_device()));
  std::vector<float> x(24), y(12, 0.5F);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1F * static_cast<float>(i) - 1;
  net->set_blob("x", x);
  net->set_blob("y", y);
  return net;
}

TEST(Recordings, AreSplitByALayerOnTheHost) {
  const std::unique_ptr<Net> host = net_with("type: 'HostDouble'");
  const std::unique_ptr<Net> device = net_with("type: 'Power' power_param { scale: 2 }");
  if (host->ops().can_record()) {
    const std::string plan = host->describe_plan();
    EXPECT_NE(plan.find("Forward is 2 recordings, split by middle (HostDouble); backward is 2 rec"),
              std::string::npos)
        << plan;
  }
  for (int pass = 0; pass < 4; ++pass) {
    for (Net* net : {host.get(), device.get()}) {
      if (pass != 3) net->clear_gradients();
      net->forward();
      pass % 2 == 0 ? net->backward() : net->backward([](const Tensor&) {});
    }
    for (int p = 0; p < 4; ++p) {
      EXPECT_EQ(host->param_gradient(p), device->param_gradient(p)) << pass << ", " << p;
    }
  }
}

}  // namespace
}  // namespace crema
