// Which weight gradients read windows where they lie, and which must not.
#include "ops/cpu/conv_outer.h"

#include <gtest/gtest.h>

namespace crema {
namespace {

struct Problem {
  const char* name;
  bool suits;  // expected
  int64_t channels, outputs, kernel, groups = 1;
};

TEST(ConvOuter, TakesOutputsThatFillVectors) {
  const Problem problems[] = {
      {"cifar10 conv1", true, 3, 32, 5},
      {"lenet conv1", true, 1, 20, 5},
      {"resnet50 1 x 1", true, 256, 64, 1},
      {"two groups", true, 64, 64, 3, 2},
      {"one output", false, 64, 1, 3},
      {"depthwise", false, 64, 64, 3, 64},
      {"outputs of one vector and a bit", false, 32, 17, 3},
      {"lenet conv2", false, 20, 50, 5},
  };
  Isa isa = *isa_named("baseline");
  isa.gemm_cols = 32;
  for (const Problem& p : problems) {
    ConvDesc desc;
    desc.x = {.shape = {2, p.channels, 20, 20}, .layout = Layout::nhwc};
    desc.w = {.shape = {p.outputs, p.channels / p.groups, p.kernel, p.kernel}};
    desc.y = {.shape = {2, p.outputs, 21 - p.kernel, 21 - p.kernel}, .layout = Layout::nhwc};
    desc.pad = {.axes = 2};
    desc.groups = static_cast<int>(p.groups);
    EXPECT_EQ(ConvOuter::suits(isa, desc), p.suits) << p.name;
  }
}

TEST(ConvOuter, RefusesThreeAxesAndNoPixels) {
  ConvDesc desc;
  desc.x = {.shape = {2, 16, 4, 4, 4}, .layout = Layout::nhwc};
  desc.w = {.shape = {16, 16, 1, 1, 1}};
  desc.y = desc.x;
  desc.pad = {.axes = 3};
  EXPECT_FALSE(ConvOuter::suits(*isa_named("baseline"), desc));
  desc.x = desc.y = {.shape = {0, 16, 4, 4}, .layout = Layout::nhwc};
  desc.w = {.shape = {16, 16, 1, 1}};
  desc.pad = {.axes = 2};
  EXPECT_FALSE(ConvOuter::suits(*isa_named("baseline"), desc));
}

}  // namespace
}  // namespace crema
