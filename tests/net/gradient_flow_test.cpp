// Which layers run backward: frozen parameters, propagate_down, force_backward, no path to a loss.
#include "net/gradient_flow.h"

#include <gtest/gtest.h>

#include "io/prototxt.h"
#include "net/wire.h"

namespace crema {
namespace {

/// Names of the layers that run backward in a chain x -> ip1 -> ip2 -> loss.
std::string backward_of(const std::string& first, const std::string& second, bool force = false) {
  NetParameter net;
  parse_text(str("force_backward: ", force ? "true" : "false", R"(
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }
    layer { name: 'ip1' type: 'InnerProduct' bottom: 'x' top: 'h' )",
                 first, R"( inner_product_param { num_output: 4 bias_term: false } }
    layer { name: 'ip2' type: 'InnerProduct' bottom: 'h' top: 's' )",
                 second, R"( inner_product_param { num_output: 4 bias_term: false } }
    layer { name: 'side' type: 'TanH' bottom: 'h' top: 'unused' }
    layer { name: 'loss' type: 'Reduction' bottom: 's' top: 'l' loss_weight: 1 })"),
             "net", &net);
  net.mutable_state()->set_phase(TRAIN);
  ErrorList errors;
  const Graph graph = wire(net, {{}, "net", true}, errors);
  errors.throw_if_any();
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    if (node.runs_backward) names.push_back(node.param.name());
  }
  return join(names);
}

const char kFrozen[] = "param { lr_mult: 0 }";

TEST(GradientFlow, GoesFromTheLossToWhatLearns) {
  EXPECT_EQ(backward_of("", ""), "ip1, ip2, loss");
  EXPECT_EQ(backward_of(kFrozen, ""), "ip2, loss");
  EXPECT_EQ(backward_of("", kFrozen), "ip1, ip2, loss");
  EXPECT_EQ(backward_of(kFrozen, kFrozen), "");
}

TEST(GradientFlow, PropagateDownFalseCuts) {
  EXPECT_EQ(backward_of("", "propagate_down: false"), "ip2, loss");
}

TEST(GradientFlow, PropagateDownTrueForces) {
  EXPECT_EQ(backward_of(str("propagate_down: true ", kFrozen), kFrozen), "ip1, ip2, loss");
}

TEST(GradientFlow, ForceBackwardReachesFrozenLayers) {
  EXPECT_EQ(backward_of(kFrozen, kFrozen, true), "ip1, ip2, loss");
}

TEST(GradientFlow, ForceBackwardDoesNotMakeLabelsLearn) {
  NetParameter net;
  parse_text(R"(force_backward: true
    layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 4 } } }
    layer { name: 'cut' type: 'Slice' bottom: 'x' top: 'scores' top: 'label'
            slice_param { slice_point: 3 } }
    layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'scores' bottom: 'label' top: 'l' })",
             "net", &net);
  net.mutable_state()->set_phase(TRAIN);
  ErrorList errors;
  const Graph graph = wire(net, {{}, "net", true}, errors);
  errors.throw_if_any();
  EXPECT_EQ(graph.nodes[2].propagates, (std::vector<uint8_t>{1, 0}));
  EXPECT_TRUE(graph.nodes[1].runs_backward);
}

}  // namespace
}  // namespace crema
