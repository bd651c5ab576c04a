// Offsets of published FCNs, which their files give in numbers, and paths that say nothing.
#include "net/crop_offsets.h"

#include <gtest/gtest.h>

#include "io/prototxt.h"

namespace crema {
namespace {

using Offsets = std::optional<std::array<int64_t, 2>>;

/// A layer with one bottom.
std::string layer(const std::string& type, const std::string& bottom, const std::string& top,
                  const std::string& fields = "") {
  return "layer { type: \"" + type + "\" bottom: \"" + bottom + "\" top: \"" + top + "\" " +
         fields + " }\n";
}
std::string conv(const std::string& bottom, const std::string& top, int kernel, int pad) {
  return layer("Convolution", bottom, top,
               str("convolution_param { kernel_size: ", kernel, " pad: ", pad, " }"));
}
std::string pool(const std::string& bottom, const std::string& top) {
  return layer("Pooling", bottom, top, "pooling_param { kernel_size: 2 stride: 2 }");
}
std::string enlarge(const std::string& bottom, const std::string& top, int kernel, int stride) {
  return layer("Deconvolution", bottom, top,
               str("convolution_param { kernel_size: ", kernel, " stride: ", stride, " }"));
}
std::string crop(const std::string& whole, const std::string& wanted, const std::string& top,
                 const std::string& fields = "") {
  return "layer { type: \"Crop\" bottom: \"" + whole + "\" bottom: \"" + wanted + "\" top: \"" +
         top + "\" " + fields + " }\n";
}

/// Of the last layer.
Offsets offsets(const std::string& text) {
  NetParameter net;
  parse_text(text, "f", &net);
  return aligned_offsets(net, net.layer_size() - 1);
}

/// VGG as FCN has it, down to the scores of the coarsest place.
std::string vgg() {
  return conv("data", "conv1", 3, 100) + layer("ReLU", "conv1", "conv1") + pool("conv1", "pool1") +
         conv("pool1", "conv2", 3, 1) + pool("conv2", "pool2") + pool("pool2", "pool3") +
         pool("pool3", "pool4") + pool("pool4", "pool5") + conv("pool5", "fc6", 7, 0) +
         layer("Dropout", "fc6", "fc6") + conv("fc6", "score_fr", 1, 0);
}

TEST(CropOffsets, AreThoseOfFcn32s) {
  EXPECT_EQ(
      offsets(vgg() + enlarge("score_fr", "upscore", 64, 32) + crop("upscore", "data", "score")),
      (Offsets{{19, 19}}));
}

TEST(CropOffsets, AreThoseOfFcn8s) {
  std::string net = vgg() + enlarge("score_fr", "upscore2", 4, 2) +
                    conv("pool4", "score_pool4", 1, 0) +
                    crop("score_pool4", "upscore2", "score_pool4c");
  EXPECT_EQ(offsets(net), (Offsets{{5, 5}}));
  net += "layer { type: \"Eltwise\" bottom: \"upscore2\" bottom: \"score_pool4c\" top: \"fuse\" }";
  net += enlarge("fuse", "upscore_pool4", 4, 2) + conv("pool3", "score_pool3", 1, 0) +
         crop("score_pool3", "upscore_pool4", "score_pool3c");
  EXPECT_EQ(offsets(net), (Offsets{{9, 9}}));
  net += enlarge("upscore_pool4", "upscore8", 16, 8) + crop("upscore8", "data", "score");
  EXPECT_EQ(offsets(net), (Offsets{{31, 31}}));
}

TEST(CropOffsets, FollowWindowsOfEveryKind) {
  EXPECT_EQ(offsets(layer("Convolution", "x", "y",
                          "convolution_param { kernel_h: 3 kernel_w: 5 pad: 7 pad: 9 "
                          "dilation: 2 dilation: 1 stride: 1 }") +
                    crop("y", "x", "z")),
            (Offsets{{5, 7}}));
  EXPECT_EQ(
      offsets(crop("x", "s", "y", "crop_param { offset: 2 offset: 3 }") + crop("x", "y", "z")),
      (Offsets{{2, 3}}));
  EXPECT_EQ(offsets(conv("x", "y", 3, 0) + crop("y", "x", "z")), (Offsets{{-1, -1}}));
}

TEST(CropOffsets, AreUnknownWherePlacesAreLost) {
  EXPECT_EQ(offsets(crop("a", "b", "c")), std::nullopt);
  EXPECT_EQ(offsets(layer("InnerProduct", "x", "y") + crop("y", "x", "z")), std::nullopt);
  EXPECT_EQ(offsets(pool("x", "y") + crop("y", "x", "z")), std::nullopt);
  EXPECT_EQ(offsets(layer("Pooling", "x", "y", "pooling_param { global_pooling: true }") +
                    crop("y", "x", "z")),
            std::nullopt);
}

}  // namespace
}  // namespace crema
