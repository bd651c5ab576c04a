// Which convolutions go by Winograd's tiles, and which must not.
#include "ops/cpu/winograd.h"

#include <gtest/gtest.h>

namespace crema {
namespace {

struct Problem {
  const char* name;
  bool forward, data, params;  // expected
  int64_t batch, channels, size, outputs, kernel;
  int64_t pad = 0, stride = 1, dilation = 1, groups = 1;
};

ConvDesc desc_of(const Problem& p) {
  const int64_t reach = p.dilation * (p.kernel - 1) + 1;
  const int64_t out = (p.size + 2 * p.pad - reach) / p.stride + 1;
  const auto both = [](int64_t v) {
    SpatialDims dims{.axes = 2};
    dims[0] = dims[1] = v;
    return dims;
  };
  ConvDesc desc;
  desc.x = {.shape = {p.batch, p.channels, p.size, p.size}, .layout = Layout::nhwc};
  desc.w = {.shape = {p.outputs, p.channels / p.groups, p.kernel, p.kernel}};
  desc.y = {.shape = {p.batch, p.outputs, out, out}, .layout = Layout::nhwc};
  desc.pad = both(p.pad);
  desc.stride = both(p.stride);
  desc.dilation = both(p.dilation);
  desc.groups = static_cast<int>(p.groups);
  return desc;
}

TEST(Winograd, TakesWhatItIsFasterFor) {
  const Problem problems[] = {
      {"googlenet conv2/3x3", true, true, true, 8, 64, 56, 192, 3, 1},
      {"caffenet conv3", true, true, true, 16, 256, 13, 384, 3, 1},
      {"caffenet conv5", true, true, true, 16, 384, 13, 256, 3, 1, 1, 1, 2},
      {"cifar10 conv2", true, true, true, 100, 32, 16, 32, 5, 2},
      {"lenet conv2", true, false, false, 64, 20, 12, 50, 5},
      {"a picture's three channels", false, false, false, 8, 3, 64, 64, 3, 1},
      {"1 x 1", false, false, false, 8, 64, 28, 64, 1},
      {"7 x 7", false, false, false, 8, 64, 28, 64, 7, 3},
      {"steps of two", false, false, false, 8, 64, 28, 64, 3, 1, 2},
      {"dilated", false, false, false, 8, 64, 28, 64, 3, 2, 1, 2},
      {"depthwise", false, false, false, 8, 64, 28, 64, 3, 1, 1, 1, 64},
      {"padding beyond the window", false, false, false, 8, 64, 28, 64, 3, 3},
      {"few tiles", false, false, false, 1, 64, 7, 64, 3, 1},
      {"many weights", false, false, false, 8, 512, 14, 512, 3, 1},
  };
  for (const Problem& p : problems) {
    const ConvDesc desc = desc_of(p);
    EXPECT_EQ(winograd_suits(desc, ConvDirection::forward), p.forward) << p.name;
    EXPECT_EQ(winograd_suits(desc, ConvDirection::data), p.data) << p.name;
    EXPECT_EQ(winograd_suits(desc, ConvDirection::params), p.params) << p.name;
  }
}

TEST(Winograd, CanBeSwitchedOff) {
  const ConvDesc desc = desc_of({"", true, true, true, 8, 64, 56, 192, 3, 1});
  ASSERT_EQ(::setenv("CREMA_WINOGRAD", "off", 1), 0);
  EXPECT_FALSE(winograd_suits(desc, ConvDirection::forward));
  ASSERT_EQ(::unsetenv("CREMA_WINOGRAD"), 0);
  EXPECT_TRUE(winograd_suits(desc, ConvDirection::forward));
}

}  // namespace
}  // namespace crema
