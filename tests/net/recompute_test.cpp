// Activations that are dropped and computed again: the bits stay, memory shrinks, and what cannot
// be computed twice is kept.
#include "net/recompute.h"

#include <gtest/gtest.h>

#include "base/philox.h"
#include "io/prototxt.h"
#include "net/net.h"
#include "net/wire.h"

namespace crema {
namespace {

std::string layer(const std::string& type, const std::string& bottom, const std::string& top,
                  const std::string& fields = "") {
  return str("layer { name: '", top, "' type: '", type, "' bottom: '", bottom, "' top: '", top,
             "' ", fields, " }\n");
}

std::string input(int batch) {
  return str("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: ", batch,
             " dim: 8 dim: 12 dim: 12 } } }\n");
}

std::string conv(const std::string& bottom, const std::string& top) {
  return layer("Convolution", bottom, top,
               "convolution_param { num_output: 8 kernel_size: 3 pad: 1 weight_filler { type: "
               "'xavier' } }");
}

/// Blocks of every kind of layer that is dropped: convolution, batch norm, sums, pooling, LRN,
/// concatenation, dropout.
std::string deep_net(int blocks, int batch = 4) {
  std::string text = input(batch), at = "x";
  for (int i = 0; i < blocks; ++i) {
    const std::string p = str("b", i, "_");
    text +=
        conv(at, p + "c") + layer("BatchNorm", p + "c", p + "n") +
        layer("Scale", p + "n", p + "s", "scale_param { bias_term: true }") +
        layer("ReLU", p + "s", p + "r") + conv(p + "r", p + "d") +
        str("layer { name: '", p, "e' type: 'Eltwise' bottom: '", p, "d' bottom: '", at, "' top: '",
            p, "e' }\n") +
        layer("ReLU", p + "e", p + "e") +
        layer("Pooling", p + "e", p + "p", "pooling_param { kernel_size: 3 stride: 1 pad: 1 }") +
        layer("LRN", p + "p", p + "l") + layer("Dropout", p + "l", p + "o") +
        str("layer { name: '", p, "k' type: 'Concat' bottom: '", p, "o' bottom: '", p, "e' top: '",
            p, "k' }\n") +
        conv(p + "k", p + "y");
    at = p + "y";
  }
  return text +
         layer("Reduction", at, "loss", "loss_weight: 1 reduction_param { operation: SUMSQ }");
}

NetParameter parse(const std::string& text) {
  NetParameter param;
  parse_text(text, "net", &param);
  return param;
}

NetOptions training() {
  NetOptions options;
  options.phase = TRAIN;
  options.train = true;
  options.log = false;
  options.seed = 7;
  return options;
}

/// The bits of two iterations: losses, gradients of parameters, statistics.
std::vector<float> bits_of(Net& net) {
  std::vector<float> x(static_cast<size_t>(net.blob_shape("x").count()));
  RandomStream random(11);
  for (float& value : x) value = static_cast<float>(random.uniform()) - 0.5F;
  net.set_blob("x", x);
  std::vector<float> out;
  for (int i = 0; i < 2; ++i) {
    out.push_back(net.forward());
    net.clear_gradients();
    net.backward();
    for (size_t p = 0; p < net.params().size(); ++p) {
      for (float v : net.param_gradient(static_cast<int>(p))) out.push_back(v);
      for (float v : net.param_values(static_cast<int>(p))) out.push_back(v);
    }
  }
  return out;
}

TEST(Recompute, GivesTheSameBitsInLessMemory) {
  const NetParameter param = parse(deep_net(6));
  Net plain(param, training(), make_ops({}));
  const std::vector<float> expected = bits_of(plain);
  ASSERT_EQ(plain.memory().recomputed, 0);
  for (const bool by_file : {true, false}) {
    NetParameter wanted = param;
    NetOptions options = training();
    by_file ? wanted.set_recompute(true) : void(options.recompute = true);
    Net net(wanted, options, make_ops({}));
    EXPECT_GT(net.memory().recomputed, 5);
    EXPECT_EQ(net.memory().plain, plain.memory().activations);
    EXPECT_LT(net.memory().activations, plain.memory().activations * 0.7);
    EXPECT_EQ(bits_of(net), expected);
    EXPECT_NE(net.describe_plan().find("again"), std::string::npos);
  }
}

TEST(Recompute, FitsIntoALimitAtTheLeastCost) {
  const NetParameter param = parse(deep_net(6));
  Net plain(param, training(), make_ops({}));
  const std::vector<float> expected = bits_of(plain);
  const MemoryReport& m = plain.memory();
  const size_t fixed = m.parameters + m.gradients + m.state + m.packed;
  NetOptions options = training();
  options.memory_limit = fixed + m.activations;
  EXPECT_EQ(Net(param, options, make_ops({})).memory().recomputed, 0);
  int before = 0;
  for (const double share : {0.9, 0.6}) {
    options.memory_limit = fixed + static_cast<size_t>(share * static_cast<double>(m.activations));
    Net net(param, options, make_ops({}));
    EXPECT_GE(net.memory().recomputed, before + 1);
    before = net.memory().recomputed;
    EXPECT_LE(net.memory().activations + fixed, options.memory_limit);
    EXPECT_EQ(bits_of(net), expected);
  }
}

TEST(Recompute, FrozenLayersKeepWhatTheyNeedForIt) {
  std::string text = deep_net(3);
  for (const char* frozen : {"b0_c", "b0_s"}) {  // nothing before b0_d learns
    const size_t at = text.find(str("name: '", frozen, "'"));
    text.insert(at, "param { lr_mult: 0 } param { lr_mult: 0 } ");
  }
  NetParameter param = parse(text);
  Net plain(param, training(), make_ops({}));
  param.set_recompute(true);
  for (LayerParameter& one : *param.mutable_layer()) {
    if (one.name() == "b0_n") one.set_recompute(true);
  }
  Net net(param, training(), make_ops({}));
  EXPECT_GT(net.memory().recomputed, 0);
  EXPECT_EQ(bits_of(net), bits_of(plain));
}

TEST(Recompute, LayersHaveTheirOwnWish) {
  NetParameter param = parse(deep_net(2));
  for (LayerParameter& one : *param.mutable_layer()) {
    if (one.name() == "b0_c" || one.name() == "b1_l") one.set_recompute(true);
  }
  Net net(param, training(), make_ops({}));
  EXPECT_EQ(net.memory().recomputed, 2);
  Net plain(parse(deep_net(2)), training(), make_ops({}));
  EXPECT_EQ(bits_of(net), bits_of(plain));
  param.set_recompute(true);
  for (LayerParameter& one : *param.mutable_layer()) one.set_recompute(false);
  NetOptions options = training();
  options.force_nchw = true;  // else a step between two layouts, which no layer speaks for
  EXPECT_EQ(Net(param, options, make_ops({})).memory().recomputed, 0);
}

TEST(Recompute, WhatDoesNotFitNamesTheLargestBatch) {
  const auto arena = [](int batch) {
    return Net(parse(deep_net(2, batch)), training(), make_ops({})).memory();
  };
  const MemoryReport five = arena(5);
  NetOptions options = training();
  options.file = "net.prototxt";
  options.memory_limit =
      five.parameters + five.gradients + five.state + five.packed + five.activations;
  NetParameter param = parse(deep_net(2, 64));
  for (LayerParameter& one : *param.mutable_layer()) one.set_recompute(false);
  try {
    Net net(param, options, make_ops({}));
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("net.prototxt: the net does not fit: it needs "), std::string::npos)
        << text;
    EXPECT_NE(text.find("the largest batch that fits is 5"), std::string::npos) << text;
  }
  options.memory_limit = 1000;
  try {
    Net net(param, options, make_ops({}));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("not even a batch of 1 fits"), std::string::npos);
  }
}

TEST(Recompute, WhatRunsOnceIsKept) {
  const std::string text = input(2) + conv("x", "a") +
                           "layer { name: 'once' type: 'LSTM' bottom: 'a3' bottom: 'cont' top: 'h' "
                           "recurrent_param { num_output: 4 } }\n" +
                           layer("Reduction", "h", "loss", "loss_weight: 1");
  std::string with_reshape = text;
  with_reshape.replace(
      with_reshape.find("layer { name: 'once'"), 0,
      layer("Reshape", "a", "a3", "reshape_param { shape { dim: 2 dim: 1 dim: -1 } }") +
          "layer { name: 'cont' type: 'DummyData' top: 'cont' dummy_data_param { shape { dim: 2 "
          "dim: 1 } } }\n");
  NetParameter param = parse(with_reshape);
  param.mutable_state()->set_phase(TRAIN);
  ErrorList errors;
  Graph graph = wire(param, {{}, "net", true}, errors);
  errors.throw_if_any();
  std::vector<std::string> names;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (is_droppable(graph, static_cast<int>(n))) names.push_back(graph.nodes[n].param.name());
  }
  EXPECT_EQ(names, std::vector<std::string>{"a"});  // not: input, alias, source, state, loss
}

}  // namespace
}  // namespace crema
