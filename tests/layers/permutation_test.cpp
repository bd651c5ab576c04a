// Permute, Transpose, Reverse, ShuffleChannel, Reorg: values moved to other places.
#include "layers/layer_harness.h"

namespace crema {
namespace {

std::string layer(const std::string& type, const std::string& fields = "") {
  return "layer { name: \"l\" type: \"" + type + "\" bottom: \"x\" top: \"y\" " + fields + " }";
}
std::string permute(const std::string& order) {
  return layer("Permute", "permute_param { " + order + " }");
}
std::string transpose(const std::string& dims) {
  return layer("Transpose", "transpose_param { " + dims + " }");
}
std::string reverse(int axis) {
  return layer("Reverse", "reverse_param { axis: " + std::to_string(axis) + " }");
}
std::string shuffle(int group) {
  return layer("ShuffleChannel", "shuffle_channel_param { group: " + std::to_string(group) + " }");
}
std::string reorg(const std::string& fields) {
  return layer("Reorg", "reorg_param { " + fields + " }");
}

const std::vector<LayerCase> kPermute = {
    {.name = "channels_last",
     .layer = permute("order: 0 order: 2 order: 3 order: 1"),
     .inputs = {{"x", {1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}}},
     .expect = {{"y", {1, 4, 2, 5, 3, 6}}},
     .shapes = {{"y", {1, 1, 3, 2}}},
     .top_gradients = {{"y", {1, 2, 3, 4, 5, 6}}},
     .expect_gradients = {{"x", {1, 3, 5, 2, 4, 6}}}},
    {.name = "the_rest_follows",
     .layer = permute("order: 2"),
     .inputs = {{"x", {2, 3, 4}}},
     .shapes = {{"y", {4, 2, 3}}}},
    {.name = "all_axes_reversed",
     .layer = permute("order: 3 order: 2 order: 1 order: 0"),
     .inputs = {{"x", {2, 3, 4, 5}}},
     .shapes = {{"y", {5, 4, 3, 2}}}},
    {.name = "nothing_moves",
     .layer = permute(""),
     .inputs = {{"x", {2, 2}, {1, 2, 3, 4}}},
     .expect = {{"y", {1, 2, 3, 4}}}},
};
INSTANTIATE_TEST_SUITE_P(Permute, LayerCases, testing::ValuesIn(kPermute), case_name);

const std::vector<LayerCase> kTranspose = {
    {.name = "width_first",
     .layer = transpose("dim: 3 dim: 0 dim: 1 dim: 2"),
     .inputs = {{"x", {2, 1, 1, 2}, {1, 2, 3, 4}}},
     .expect = {{"y", {1, 3, 2, 4}}},
     .shapes = {{"y", {2, 2, 1, 1}}}},
    {.name = "negative_axes", .layer = transpose("dim: -1 dim: 0"), .inputs = {{"x", {2, 3}}}},
};
INSTANTIATE_TEST_SUITE_P(Transpose, LayerCases, testing::ValuesIn(kTranspose), case_name);

const std::vector<LayerCase> kReverse = {
    {.name = "rows",
     .layer = reverse(0),
     .inputs = {{"x", {2, 3}, {1, 2, 3, 4, 5, 6}}},
     .expect = {{"y", {4, 5, 6, 1, 2, 3}}}},
    {.name = "columns",
     .layer = reverse(-1),
     .inputs = {{"x", {2, 3}, {1, 2, 3, 4, 5, 6}}},
     .expect = {{"y", {3, 2, 1, 6, 5, 4}}},
     .top_gradients = {{"y", {1, 2, 3, 4, 5, 6}}},
     .expect_gradients = {{"x", {3, 2, 1, 6, 5, 4}}}},
    {.name = "middle", .layer = reverse(1), .inputs = {{"x", {2, 3, 2, 2}}}},
};
INSTANTIATE_TEST_SUITE_P(Reverse, LayerCases, testing::ValuesIn(kReverse), case_name);

const std::vector<LayerCase> kShuffle = {
    {.name = "two_groups",
     .layer = shuffle(2),
     .inputs = {{"x", {1, 6, 1, 1}, {1, 2, 3, 4, 5, 6}}},
     .expect = {{"y", {1, 4, 2, 5, 3, 6}}}},
    {.name = "three_groups_of_pictures",
     .layer = shuffle(3),
     .inputs = {{"x", {2, 6, 2, 3}}},
     .shapes = {{"y", {2, 6, 2, 3}}}},
};
INSTANTIATE_TEST_SUITE_P(ShuffleChannel, LayerCases, testing::ValuesIn(kShuffle), case_name);

// The values are places in memory, so the rows are Darknet's index formula written out.
const std::vector<LayerCase> kReorg = {
    {.name = "darknet_order",
     .layer = reorg("stride: 2"),
     .inputs = {{"x", {1, 4, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}},
     .expect = {{"y", {0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15}}},
     .shapes = {{"y", {1, 16, 1, 1}}}},
    {.name = "reverse",
     .layer = reorg("stride: 2 reverse: true"),
     .inputs = {{"x", {1, 4, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7}}},
     .expect = {{"y", {0, 2, 1, 3, 4, 6, 5, 7}}},
     .shapes = {{"y", {1, 1, 2, 4}}}},
    {.name = "pictures",
     .layer = reorg("stride: 2"),
     .inputs = {{"x", {2, 8, 4, 6}}},
     .shapes = {{"y", {2, 32, 2, 3}}}},
};
INSTANTIATE_TEST_SUITE_P(Reorg, LayerCases, testing::ValuesIn(kReorg), case_name);

TEST(Permutations, Refusals) {
  const std::vector<LayerInput> inputs = {{"x", {2, 6, 3, 4}}};
  const auto bad = [&](const std::string& text, const std::string& message) {
    expect_error({.layer = text, .inputs = inputs}, message);
  };
  bad(permute("order: 0 order: 4"),
      "order: axis 4 does not exist in bottom \"x\" of shape 2 6 3 4");
  bad(permute("order: 1 order: 1"), "order: axis 1 is listed twice");
  bad(transpose("dim: 1 dim: 0"), "dim: lists 2 axes, but bottom \"x\" of shape 2 6 3 4 has 4");
  bad(reverse(4), "axis: 4 does not exist");
  bad(shuffle(4), "group: 4 must divide the 6 channels of bottom \"x\"");
  bad(shuffle(0), "group: 0 must divide");
  bad(reorg(""), "stride: missing");
  bad(reorg("stride: 2"), "stride: its square 4 must divide the 6 channels");
  expect_error({.layer = reorg("stride: 2"), .inputs = {{"x", {1, 4, 3, 4}}}},
               "stride: 2 must divide height and width of bottom \"x\", 3 x 4");
}

}  // namespace
}  // namespace crema
