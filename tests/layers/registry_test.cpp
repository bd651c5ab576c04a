// That linking loses no layer: the types that BVLC Caffe registers.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "layers/layer_harness.h"

namespace crema {
namespace {

TEST(Registry, HasEveryTypeOfBvlc) {
  const std::set<std::string> types = {"AbsVal",
                                       "Accuracy",
                                       "ArgMax",
                                       "BNLL",
                                       "BatchNorm",
                                       "BatchReindex",
                                       "Bias",
                                       "Clip",
                                       "Concat",
                                       "ContrastiveLoss",
                                       "Convolution",
                                       "Crop",
                                       "Data",
                                       "Deconvolution",
                                       "Dropout",
                                       "DummyData",
                                       "ELU",
                                       "Eltwise",
                                       "Embed",
                                       "EuclideanLoss",
                                       "Exp",
                                       "Filter",
                                       "Flatten",
                                       "HDF5Data",
                                       "HDF5Output",
                                       "HingeLoss",
                                       "Im2col",
                                       "ImageData",
                                       "InfogainLoss",
                                       "InnerProduct",
                                       "Input",
                                       "LRN",
                                       "LSTM",
                                       "LSTMUnit",
                                       "Log",
                                       "MVN",
                                       "MemoryData",
                                       "MultinomialLogisticLoss",
                                       "PReLU",
                                       "Parameter",
                                       "Pooling",
                                       "Power",
                                       "Python",
                                       "RNN",
                                       "ReLU",
                                       "Reduction",
                                       "Reshape",
                                       "SPP",
                                       "Scale",
                                       "Sigmoid",
                                       "SigmoidCrossEntropyLoss",
                                       "Silence",
                                       "Slice",
                                       "Softmax",
                                       "SoftmaxWithLoss",
                                       "Split",
                                       "Swish",
                                       "TanH",
                                       "Threshold",
                                       "Tile",
                                       "WindowData"};
  EXPECT_EQ(types.size(), 61u);
  for (const std::string& type : types) EXPECT_TRUE(layer_registry().find(type)) << type;
}

TEST(Registry, PythonIsAnsweredInOneLine) {
  expect_error(
      "layer { name: 'p' type: 'Python' top: 'y' python_param { module: 'm' layer: 'L' } }",
      "Python layers are not supported");
}

}  // namespace
}  // namespace crema
