// The loss that is read beside backward is the one that is waited for, and faults and losses that
// are not finite are told as there.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "io/prototxt.h"
#include "net/net.h"

namespace crema {
namespace {

/// Two losses, one of many values.
constexpr char kNet[] = R"(
  layer { name: "in" type: "Input" top: "x" top: "label"
    input_param { shape { dim: 4 dim: 6 } shape { dim: 4 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "x" top: "s" inner_product_param {
    num_output: 5 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "s" bottom: "label" top: "loss" }
  layer { name: "more" type: "Power" bottom: "s" top: "more" power_param { scale: 0.3 }
    loss_weight: 0.25 })";

std::unique_ptr<Net> make_net() {
  NetParameter param;
  parse_text(kNet, "net", &param);
  NetOptions options;
  options.phase = TRAIN;
  options.train = true;
  options.log = false;
  options.seed = 4;
  return std::make_unique<Net>(param, options, make_ops({.gpu = true}));
}

void set_inputs(Net& net, float first, float label) {
  std::vector<float> x(24);
  for (size_t i = 0; i < x.size(); ++i) x[i] = first + 0.1F * static_cast<float>(i);
  net.set_blob("x", x);
  net.set_blob("label", {0, 1, label, 3});
}

TEST(LossBesideBackward, IsTheLossThatIsWaitedFor) {
  const std::unique_ptr<Net> waits = make_net(), beside = make_net();
  for (int i = 0; i < 6; ++i) {
    for (Net* net : {waits.get(), beside.get()}) {
      set_inputs(*net, 0.2F * static_cast<float>(i), 2);
      net->clear_gradients();
    }
    const float loss = waits->forward();
    waits->backward();
    EXPECT_EQ(beside->forward_backward(), loss) << i;
    for (int p = 0; p < 2; ++p) EXPECT_EQ(beside->param_gradient(p), waits->param_gradient(p));
  }
}

TEST(LossBesideBackward, TellsFaults) {
  const std::unique_ptr<Net> net = make_net();
  for (int i = 0; i < 4; ++i) {  // done, recorded, replayed; and the fault is gone afterwards
    set_inputs(*net, 0, 9);
    try {
      net->forward_backward();
      ADD_FAILURE() << "no Error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("label 9"), std::string::npos) << error.what();
    }
    set_inputs(*net, 0, 2);
    EXPECT_TRUE(std::isfinite(net->forward_backward()));
  }
  set_inputs(*net, std::numeric_limits<float>::quiet_NaN(), 2);
  EXPECT_FALSE(std::isfinite(net->forward_backward()));
}

}  // namespace
}  // namespace crema
