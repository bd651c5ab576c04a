// A sum of two blobs, with or without an activation behind it, joined into the convolution or batch
// norm before it: the same values and gradients as step by step, in training and without.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string conv(const std::string& bottom, const std::string& top) {
  return "layer { name: '" + top + "' type: 'Convolution' bottom: '" + bottom + "' top: '" + top +
         "' convolution_param { num_output: 4 kernel_size: 3 pad: 1 } }\n";
}
std::string norm(const std::string& bottom, const std::string& top) {
  return "layer { name: '" + top + "' type: 'BatchNorm' bottom: '" + bottom + "' top: '" + top +
         "' }\nlayer { name: '" + top + " scale' type: 'Scale' bottom: '" + top + "' top: '" + top +
         "' scale_param { bias_term: true } }\n";
}
std::string sum(const std::string& a, const std::string& b) {
  return "layer { name: 'sum' type: 'Eltwise' bottom: '" + a + "' bottom: '" + b + "' top: 'e' }\n";
}
std::string act(const std::string& type) {
  return "layer { name: 'act' type: '" + type + "' bottom: 'e' top: 'y' }\n";
}

const std::vector<LayerInput> kX = {{"x", {2, 4, 5, 6}}};
const std::vector<LayerInput> kXAndR = {{"x", {2, 4, 5, 6}}, {"r", {2, 4, 5, 6}}};

std::vector<LayerCase> cases() {
  std::vector<LayerCase> all = {
      {.name = "convolution", .layer = conv("x", "c") + sum("c", "r"), .inputs = kXAndR},
      {.name = "convolution_relu",
       .layer = conv("x", "c") + sum("r", "c") + act("ReLU"),
       .inputs = kXAndR},
      {.name = "convolution_elu",
       .layer = conv("x", "c") + sum("c", "r") + act("ELU"),
       .inputs = kXAndR},
      {.name = "around_a_convolution",
       .layer = conv("x", "c") + sum("c", "x") + act("ReLU"),
       .inputs = kX},
      {.name = "batch_norm", .layer = norm("x", "n") + sum("n", "r"), .inputs = kXAndR},
      {.name = "batch_norm_relu",
       .layer = norm("x", "n") + sum("n", "r") + act("ReLU"),
       .inputs = kXAndR},
      {.name = "batch_norm_relu6",
       .layer = norm("x", "n") + sum("n", "r") + act("ReLU6"),
       .inputs = kXAndR},
      {.name = "around_a_batch_norm",
       .layer = norm("x", "n") + sum("x", "n") + act("ReLU"),
       .inputs = kX},
      {.name = "read_again",
       .layer = norm("x", "n") + sum("n", "r") + act("ReLU") + conv("y", "c") +
                "layer { name: 'sum2' type: 'Eltwise' bottom: 'c' bottom: 'y' top: 'z' }\n",
       .inputs = kXAndR,
       .tolerance = 1e-3F},
  };
  for (LayerCase& one : all) one.check_gradient = false;  // of each layer: beside the layer
  std::vector<LayerCase> tests = all;
  for (LayerCase one : all) {
    one.name += "_forward";
    one.phase = TEST;
    one.backward = false;
    tests.push_back(one);
  }
  return tests;
}
INSTANTIATE_TEST_SUITE_P(Residual, LayerCases, testing::ValuesIn(cases()), case_name);

}  // namespace
}  // namespace crema
