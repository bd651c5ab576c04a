// LSTM, RNN, LSTMUnit: gradients through time, what cont does, states from one forward to the next.
#include <cmath>

#include "io/scratch.h"
#include "layers/layer_harness.h"
#include "reference/reference.h"

namespace crema {
namespace {

std::string layer(const std::string& type, const std::string& bottoms = "",
                  const std::string& fields = "", const std::string& tops = "") {
  return "layer { name: \"l\" type: \"" + type + "\" bottom: \"x\" bottom: \"cont\" " + bottoms +
         " top: \"y\" " + tops + " recurrent_param { num_output: 4 " + fields + " } }";
}

LayerInput cont(const Shape& shape, const std::vector<float>& values) {
  return {.name = "cont", .shape = shape, .values = values, .gradient = false};
}

/// The first step begins every stream anew, so that a second forward computes the same.
LayerCase sequence_case(const std::string& name, const std::string& type) {
  return {.name = name,
          .layer = layer(type),
          .inputs = {{"x", {3, 2, 5}}, cont({3, 2}, {0, 0, 1, 0, 1, 1})}};
}
LayerCase static_case(const std::string& name, const std::string& type) {
  return {.name = name,
          .layer = layer(type, "bottom: \"s\""),
          .inputs = {{"x", {3, 2, 2, 2}}, cont({3, 2}, {0, 0, 1, 1, 0, 1}), {"s", {2, 3}}}};
}

const std::vector<LayerCase> kLstm = {
    sequence_case("sequence", "LSTM"),
    static_case("static_input", "LSTM"),
    {.name = "exposed_states",
     .layer = layer("LSTM", "bottom: \"h0\" bottom: \"c0\"", "expose_hidden: true",
                    "top: \"h\" top: \"c\""),
     .inputs = {{"x", {3, 2, 5}},
                cont({3, 2}, {1, 1, 1, 0, 1, 1}),
                {.name = "h0", .shape = {1, 2, 4}, .gradient = false},
                {.name = "c0", .shape = {1, 2, 4}, .gradient = false}},
     .shapes = {{"h", {1, 2, 4}}, {"c", {1, 2, 4}}},
     .no_loss = {"h", "c"}},
    {.name = "one_step",
     .layer = layer("LSTM"),
     .inputs = {{"x", {1, 3, 2}}, cont({1, 3}, {0, 0, 0})}},
};
INSTANTIATE_TEST_SUITE_P(LSTM, LayerCases, testing::ValuesIn(kLstm), case_name);

const std::vector<LayerCase> kRnn = {
    sequence_case("sequence", "RNN"),
    static_case("static_input", "RNN"),
    {.name = "exposed_state",
     .layer = layer("RNN", "bottom: \"h0\"", "expose_hidden: true", "top: \"h\""),
     .inputs = {{"x", {3, 2, 5}},
                cont({3, 2}, {1, 1, 1, 0, 1, 1}),
                {.name = "h0", .shape = {1, 2, 4}, .gradient = false}},
     .no_loss = {"h"}},
};
INSTANTIATE_TEST_SUITE_P(RNN, LayerCases, testing::ValuesIn(kRnn), case_name);

const std::vector<LayerCase> kUnit = {
    {.name = "step",
     .layer = "layer { name: \"l\" type: \"LSTMUnit\" bottom: \"c_prev\" bottom: \"gates\" bottom: "
              "\"cont\" top: \"c\" top: \"h\" }",
     .inputs = {{"c_prev", {1, 3, 2}}, {"gates", {1, 3, 8}}, cont({1, 3}, {1, 0, 1})},
     .shapes = {{"c", {1, 3, 2}}, {"h", {1, 3, 2}}}},
    {.name = "only_h_is_read",
     .layer = "layer { name: \"l\" type: \"LSTMUnit\" bottom: \"c_prev\" bottom: \"gates\" bottom: "
              "\"cont\" top: \"c\" top: \"h\" }",
     .inputs = {{"c_prev", {1, 1, 2}}, {"gates", {1, 1, 8}}, cont({1, 1}, {1})},
     .no_loss = {"c"}},
};
INSTANTIATE_TEST_SUITE_P(LSTMUnit, LayerCases, testing::ValuesIn(kUnit), case_name);

/// A net of T steps, two streams.
class Sequence {
 public:
  Sequence(const std::string& type, int steps)
      : net_(text(type, steps), options(), make_reference_ops()) {
    for (size_t p = 0; p < net_.params().size(); ++p) {
      std::vector<float> values = net_.param_values(static_cast<int>(p));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = 0.5f * std::sin(static_cast<float>(i * 7 + p));
      }
      net_.set_param_values(static_cast<int>(p), values);
    }
    net_.params_changed();
  }
  std::vector<float> run(const std::vector<float>& x, const std::vector<float>& cont) {
    net_.set_blob("x", x);
    net_.set_blob("cont", cont);
    net_.forward();
    return net_.blob_values("y");
  }

 private:
  static NetOptions options() {
    NetOptions options;
    options.log = false;
    return options;
  }
  static NetParameter text(const std::string& type, int steps) {
    NetParameter net;
    const auto input = [&](const char* name, const std::vector<int64_t>& dims) {
      LayerParameter* layer = net.add_layer();
      layer->set_name(name);
      layer->set_type("Input");
      layer->add_top(name);
      BlobShape* shape = layer->mutable_input_param()->add_shape();
      for (const int64_t dim : dims) shape->add_dim(dim);
    };
    input("x", {steps, 2, 3});
    input("cont", {steps, 2});
    LayerParameter* layer = net.add_layer();
    layer->set_name("l");
    layer->set_type(type);
    layer->add_bottom("x");
    layer->add_bottom("cont");
    layer->add_top("y");
    layer->mutable_recurrent_param()->set_num_output(4);
    return net;
  }
  Net net_;
};

std::vector<float> values(size_t count) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = std::cos(static_cast<float>(i));
  return out;
}
std::vector<float> half(const std::vector<float>& all, size_t which) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  return which == 0 ? std::vector<float>(all.begin(), middle)
                    : std::vector<float>(middle, all.end());
}

class RecurrentTypes : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Types, RecurrentTypes, testing::Values("LSTM", "RNN"));

TEST_P(RecurrentTypes, B89_TwoHalvesEqualTheWhole) {
  const std::vector<float> x = values(24), one(8, 1);
  Sequence whole(GetParam(), 4), halves(GetParam(), 2);
  const std::vector<float> expected = whole.run(x, one);
  EXPECT_EQ(halves.run(half(x, 0), half(one, 0)), half(expected, 0));
  EXPECT_EQ(halves.run(half(x, 1), half(one, 1)), half(expected, 1));
  EXPECT_NE(whole.run(x, one), expected) << "the state is carried on";
}

TEST_P(RecurrentTypes, B89_ContZeroResetsThatStreamOnly) {
  const std::vector<float> x = values(24), one(8, 1);
  Sequence plain(GetParam(), 4), cut(GetParam(), 4), fresh(GetParam(), 2);
  const std::vector<float> carried = half(plain.run(x, one), 1);
  const std::vector<float> reset = half(cut.run(x, {1, 1, 1, 1, 0, 1, 1, 1}), 1);
  const std::vector<float> anew = fresh.run(half(x, 1), half(one, 1));
  for (size_t i = 0; i < reset.size(); ++i) {
    const bool first_stream = i / 4 % 2 == 0;
    EXPECT_EQ(reset[i], first_stream ? anew[i] : carried[i]) << i;
  }
  EXPECT_NE(carried, anew);
}

TEST_P(RecurrentTypes, B89_NumberOfStepsIsFixed) {
  LayerParameter param;
  param.set_type(GetParam());
  param.mutable_recurrent_param()->set_num_output(4);
  const std::unique_ptr<Layer> layer = make_layer(param, {});
  EXPECT_EQ(layer->infer({{4, 2, 3}, {4, 2}})[0], (Shape{4, 2, 4}));
  EXPECT_EQ(layer->infer({{4, 5, 3}, {4, 5}})[0], (Shape{4, 5, 4})) << "streams may change";
  EXPECT_THROW(layer->infer({{3, 2, 3}, {3, 2}}), Error);
  EXPECT_THROW(layer->infer({{4, 2, 7}, {4, 2}}), Error);
}

TEST_P(RecurrentTypes, Refusals) {
  const std::string type = GetParam();
  expect_error({.layer = layer(type), .inputs = {{"x", {3, 2, 5}}, cont({3, 1}, {0, 0, 0})}},
               "bottom \"cont\" (cont) of shape 3 1 must have shape 3 2");
  expect_error({.layer = layer(type, "bottom: \"s\""),
                .inputs = {{"x", {1, 2, 5}}, cont({1, 2}, {0, 0}), {"s", {3, 5}}}},
               "bottom \"s\" of shape 3 5 must have one row for each of the 2 streams");
  expect_error({.layer = "layer { name: \"l\" type: \"" + type +
                         "\" bottom: \"x\" bottom: \"cont\" top: \"y\" }",
                .inputs = {{"x", {1, 2, 5}}, cont({1, 2}, {0, 0})}},
               "num_output: missing");
}

TEST(LSTM, RefusesAStateOfAnotherShape) {
  expect_error(
      {.layer = layer("LSTM", "bottom: \"h0\" bottom: \"c0\"", "expose_hidden: true",
                      "top: \"h\" top: \"c\""),
       .inputs = {{"x", {1, 2, 5}}, cont({1, 2}, {0, 0}), {"h0", {1, 2, 4}}, {"c0", {1, 2, 3}}}},
      "bottom \"c0\" of shape 1 2 3 must have the state's shape, 1 2 4");
}

TEST(LSTMUnit, Refusals) {
  expect_error(
      {.layer = "layer { name: \"l\" type: \"LSTMUnit\" bottom: \"c_prev\" bottom: \"gates\" "
                "bottom: \"cont\" top: \"c\" top: \"h\" }",
       .inputs = {{"c_prev", {1, 3, 2}}, {"gates", {1, 3, 6}}, cont({1, 3}, {1, 0, 1})}},
      "bottom \"gates\" of shape 1 3 6 must have shape 1 3 8");
}

TEST(Recurrent, SaysThatThereIsNoInnerNetToShow) {
  const LogLines log;
  run_layer({.name = "debug",
             .layer = layer("LSTM", "", "debug_info: true"),
             .inputs = {{"x", {1, 3, 2}}, cont({1, 3}, {0, 0, 0})},
             .phase = TEST,
             .backward = false});
  ASSERT_FALSE(log.lines.empty());
  EXPECT_EQ(log.lines[0],
            "layer \"l\" (LSTM): debug_info of recurrent_param does nothing, for there is no inner "
            "net; debug_info of the net shows this layer's blobs");
}

}  // namespace
}  // namespace crema
