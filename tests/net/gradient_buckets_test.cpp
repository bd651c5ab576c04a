// The parts in which backward tells gradients: every element once, and none that is written later.
#include "net/gradient_buckets.h"

#include <gtest/gtest.h>

#include <map>

#include "io/prototxt.h"
#include "test_device.h"

namespace crema {
namespace {

// A weight of three layers, of which the first is frozen, and biases at another rate.
constexpr char kNet[] = R"(
  layer { name: "in" type: "DummyData" top: "x" top: "y" dummy_data_param {
    shape { dim: 4 dim: 6 } shape { dim: 4 dim: 6 } data_filler { type: "gaussian" std: 1 } } }
  layer { name: "frozen" type: "InnerProduct" bottom: "x" top: "f" param { lr_mult: 0 }
    param { lr_mult: 0 } inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
  layer { name: "a" type: "InnerProduct" bottom: "f" top: "a" param { name: "w" }
    param { lr_mult: 2 } inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
  layer { name: "own" type: "InnerProduct" bottom: "a" top: "o" param { lr_mult: 1 }
    param { lr_mult: 2 } inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
  layer { name: "tanh" type: "TanH" bottom: "o" top: "o" }
  layer { name: "b" type: "InnerProduct" bottom: "o" top: "b" param { name: "w" }
    param { lr_mult: 2 } inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
  layer { name: "last" type: "InnerProduct" bottom: "b" top: "l" param { lr_mult: 1 }
    param { lr_mult: 2 } inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "l" bottom: "y" top: "loss" })";

std::unique_ptr<Net> net_of(const std::shared_ptr<Ops>& ops, size_t bucket_bytes) {
  NetParameter param;
  parse_text(kNet, "net", &param);
  NetOptions options;
  options.phase = TRAIN;
  options.train = true;
  options.log = false;
  options.seed = 3;
  options.bucket_bytes = bucket_bytes;
  return std::make_unique<Net>(param, options, ops);
}

std::vector<float> values_of(Ops& ops, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.count()));
  ops.download(tensor, values.data());
  return values;
}

/// What was told in one backward: the part, and what it held then.
struct Told {
  Tensor part;
  std::vector<float> values;
};

std::vector<Told> told_in_backward(Net& net) {
  std::vector<Told> told;
  net.backward([&](const Tensor& part) { told.push_back({part, values_of(net.ops(), part)}); });
  return told;
}

class GradientBuckets : public testing::TestWithParam<size_t> {};

TEST_P(GradientBuckets, AreFinalWhenTheyAreTold) {
  const std::unique_ptr<Net> net = net_of(make_ops(test_device()), GetParam());
  for (int pass = 0; pass < 5; ++pass) {  // done, recorded and replayed, into empty and full ones
    if (pass != 4) net->clear_gradients();
    net->forward();
    for (const Told& one : told_in_backward(*net)) {
      EXPECT_EQ(one.values, values_of(net->ops(), one.part)) << "pass " << pass;
    }
  }
}

TEST_P(GradientBuckets, GiveTheGradientsOfAPlainBackward) {
  const std::shared_ptr<Ops> ops = make_ops(test_device());
  const std::unique_ptr<Net> plain = net_of(ops, GetParam()), parts = net_of(ops, GetParam());
  for (int pass = 0; pass < 4; ++pass) {
    for (Net* net : {plain.get(), parts.get()}) {
      net->clear_gradients();
      net->forward();
    }
    plain->backward();
    told_in_backward(*parts);
    for (size_t p = 0; p < plain->params().size(); ++p) {
      EXPECT_EQ(plain->param_gradient(static_cast<int>(p)),
                parts->param_gradient(static_cast<int>(p)));
    }
  }
}

TEST_P(GradientBuckets, CoverEachGroupOnce) {
  const std::unique_ptr<Net> net = net_of(make_ops(test_device()), GetParam());
  net->forward();
  std::map<float*, int64_t> parts;
  for (const Told& one : told_in_backward(*net)) {
    EXPECT_TRUE(parts.emplace(one.part.f32(), one.part.count()).second);
  }
  size_t used = 0;
  for (const Net::Group& group : net->groups()) {
    const float* const end = group.gradient.f32() + group.gradient.count();
    for (float* at = group.gradient.f32(); at < end; ++used) {
      ASSERT_EQ(parts.count(at), 1U);
      at += parts[at];
      EXPECT_LE(at, end);
    }
  }
  EXPECT_EQ(used, parts.size());
  EXPECT_EQ(net->groups().size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, GradientBuckets, testing::Values(1, 200, size_t{8} << 20));

TEST(GradientBuckets, TellTheLastLayerFirst) {
  const std::unique_ptr<Net> net = net_of(make_ops(test_device()), 1);
  net->forward();
  const std::vector<Told> told = told_in_backward(*net);
  // Weights of last, own and the shared one; biases of last, b, own and a.
  ASSERT_EQ(told.size(), 7U);
  const auto is_part_of = [&](const Told& one, const char* layer, int index) {
    const int param = net->param_of(net->layer_index(layer), index);
    return net->params()[static_cast<size_t>(param)].gradient.data == one.part.data;
  };
  EXPECT_TRUE(is_part_of(told[0], "last", 0));
  EXPECT_TRUE(is_part_of(told[1], "last", 1));
  EXPECT_TRUE(is_part_of(told[2], "b", 1));
  EXPECT_TRUE(is_part_of(told[3], "own", 0));
  EXPECT_TRUE(is_part_of(told[4], "own", 1));
  EXPECT_TRUE(is_part_of(told[5], "b", 0) && is_part_of(told[5], "a", 0));
  EXPECT_TRUE(is_part_of(told[6], "a", 1));
}

}  // namespace
}  // namespace crema
