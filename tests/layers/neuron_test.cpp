// The layers that are one formula per element.
#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& type, const std::string& fields = "") {
  return "layer { name: \"l\" type: \"" + type + "\" bottom: \"x\" top: \"y\" " + fields + " }";
}

/// 24 values, none of them at a kink at 0.
LayerInput values(float low = -1, float high = 1) {
  return {.name = "x", .shape = {2, 3, 2, 2}, .draw = Draw::distinct, .low = low, .high = high};
}

LayerCase row(const std::string& name, const std::string& text, LayerInput input,
              float step = 5e-3f) {
  return {
      .name = name, .layer = text, .inputs = {std::move(input)}, .in_place = true, .step = step};
}

LayerCase known(const std::string& name, const std::string& text, std::vector<float> x,
                std::vector<float> y, std::vector<float> dx) {
  const std::vector<float> ones(x.size(), 1.0f);
  return {.name = name,
          .layer = text,
          .inputs = {{"x", {static_cast<int64_t>(x.size())}, std::move(x)}},
          .expect = {{"y", std::move(y)}},
          .top_gradients = {{"y", ones}},
          .expect_gradients = {{"x", std::move(dx)}},
          .check_gradient = false,
          .in_place = true};
}

const float kE = std::exp(1.0f);

const std::vector<LayerCase> kCases = {
    row("relu", layer("ReLU"), values()),
    known("relu_values", layer("ReLU", "relu_param { negative_slope: 0.5 }"), {-2, 0, 3},
          {-1, 0, 3}, {0.5f, 0.5f, 1}),
    row("relu_negative_slope_below_0", layer("ReLU", "relu_param { negative_slope: -0.5 }"),
        values()),
    known("relu6", layer("ReLU6"), {-1, 2, 7}, {0, 2, 6}, {0, 1, 0}),
    row("elu", layer("ELU", "elu_param { alpha: 0.5 }"), values()),
    row("elu_alpha_below_0", layer("ELU", "elu_param { alpha: -0.5 }"), values()),
    known("elu_values", layer("ELU", "elu_param { alpha: 0.5 }"), {-1, 2}, {-0.31606028f, 2},
          {0.18393972f, 1}),
    row("elu_lambda", layer("ELU", "elu_param { alpha: 1.5 lambda: 1.2 }"), values()),
    row("elu_lambda_below_0", layer("ELU", "elu_param { alpha: 0.5 lambda: -2 }"), values()),
    known("selu_values", layer("ELU", "elu_param { alpha: 1.6732632 lambda: 1.050701 }"), {-1, 2},
          {-1.1113307f, 2.101402f}, {0.6467686f, 1.050701f}),
    known("tanh_values", layer("TanH"), {0.5f}, {0.46211716f}, {0.78644773f}),
    known("swish_values", layer("Swish", "swish_param { beta: 1.5 }"), {1}, {0.81757448f},
          {1.04129295f}),
    known("power_values", layer("Power", "power_param { power: 3 scale: 0.5 shift: 1 }"), {2}, {8},
          {6}),
    known("exp_values", layer("Exp", "exp_param { base: 2 scale: 0.5 shift: 1 }"), {2}, {4},
          {1.38629436f}),
    known("log_values", layer("Log", "log_param { base: 10 scale: 2 shift: 3 }"), {3.5f}, {1},
          {0.0868589f}),
    row("sigmoid", layer("Sigmoid"), values(-3, 3)),
    known("sigmoid_extremes", layer("Sigmoid"), {-200, 0, 200}, {0, 0.5f, 1}, {0, 0.25f, 0}),
    row("tanh", layer("TanH"), values(-2, 2)),
    known("bnll_extremes", layer("BNLL"), {-200, 0, 200}, {0, std::log(2.0f), 200}, {0, 0.5f, 1}),
    row("bnll", layer("BNLL"), values(-3, 3)),
    row("swish", layer("Swish", "swish_param { beta: 1.5 }"), values(-2, 2)),
    row("power", layer("Power", "power_param { power: 3 scale: 0.5 shift: 1 }"), values()),
    known("power_0", layer("Power", "power_param { power: 0 scale: 2 }"), {-1, 0, 2}, {1, 1, 1},
          {0, 0, 0}),
    known("power_2_at_0", layer("Power", "power_param { power: 2 }"), {0, -3}, {0, 9}, {0, -6}),
    known("scale_0", layer("Power", "power_param { power: 2 scale: 0 shift: 3 }"), {1, 2}, {9, 9},
          {0, 0}),
    known("exp", layer("Exp"), {0, 1}, {1, kE}, {1, kE}),
    row("exp_base_2", layer("Exp", "exp_param { base: 2 scale: 0.5 shift: 1 }"), values()),
    row("log", layer("Log", "log_param { base: 10 scale: 2 shift: 3 }"), values()),
    known("clip", layer("Clip", "clip_param { min: -0.5 max: 2 }"), {-1, 1, 3}, {-0.5f, 1, 2},
          {0, 1, 0}),
    {.name = "threshold",
     .layer = layer("Threshold", "threshold_param { threshold: 0.5 }"),
     .inputs = {{"x", {3}, {0, 0.5f, 1}}},
     .expect = {{"y", {0, 0, 1}}},
     .backward = false},
};
INSTANTIATE_TEST_SUITE_P(Neuron, LayerCases, testing::ValuesIn(kCases), case_name);

TEST(NeuronErrors, NameTheField) {
  const auto bad = [](const std::string& text, const std::string& error) {
    expect_error({.name = "bad", .layer = text, .inputs = {{"x", {2}}}}, error);
  };
  bad(layer("Exp", "exp_param { base: 0 }"), "base: must be above 0, or -1 for e, not 0");
  bad(layer("Log", "log_param { base: -2 }"), "base: must be above 0, or -1 for e, not -2");
  bad(layer("Log", "log_param { base: 1 }"), "base: there is no logarithm to the base 1");
  bad(layer("Clip"), "clip_param: min and max are missing");
  bad(layer("Clip", "clip_param { min: 2 max: 1 }"), "min: 2 is above max 1");
}

TEST(Reports, B44_AbsValGradientAtZeroIsZero) {
  check_layer(known("absval", layer("AbsVal"), {-1, 0, 2}, {1, 0, 2}, {-1, 0, 1}), nullptr);
}

TEST(Reports, B56_PowerOneInPlace) {
  LayerCase test = known("power", layer("Power", "power_param { scale: 1024 shift: 128 power: 1 }"),
                         {1, -2}, {1152, -1920}, {2048, 2048});
  test.top_gradients = {{"y", {2, 2}}};
  check_layer(test, nullptr);
}

}  // namespace
}  // namespace crema
