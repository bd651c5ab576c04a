// Layer tests as rows: prototxt text and input values in; everything that can be checked without
// knowing the layer is checked. A test file is its rows and one line:
//
//   const std::vector<LayerCase> kCases = {
//       {.name = "slope",
//        .layer = R"(layer { name: "l" type: "ReLU" bottom: "x" top: "y" relu_param {
//        negative_slope: 0.1 } })", .inputs = {{"x", {2, 3, 4, 5}}}, .in_place = true},
//       {.name = "known_values",
//        .layer = R"(layer { name: "l" type: "AbsVal" bottom: "x" top: "y" })",
//        .inputs = {{"x", {3}, {-1, 0, 2}}},
//        .expect = {{"y", {1, 0, 2}}},
//        .top_gradients = {{"y", {1, 1, 1}}},
//        .expect_gradients = {{"x", {-1, 0, 1}}},
//        .check_gradient = false},
//   };
//   INSTANTIATE_TEST_SUITE_P(ReLU, LayerCases, testing::ValuesIn(kCases), case_name);
//
// What a row checks. The net is Input layers, the text, and a loss: sum of top * weight with random
// weights (or top_gradients) over every output; an output of a loss layer is its own loss. It runs
//   - on ReferenceOps in nchw: expected values, and the gradients of inputs and parameters against
//   central differences;
//   - on ReferenceOps and on the CPU (a second test: on the GPU), in nchw, in nhwc (copy layers
//   that prefer nhwc stand
//     around the text), with planned memory and fusion on, and in place where asked for: equal to
//     the first run;
//   - forward twice gives the same bits; a second backward without clearing doubles parameter
//   gradients;
//   - on the CPU with 1, 2 and 4 threads (a third test): equal to rounding, the same bits again
//     with the same number.
// Mistakes: expect_error(case or text, "text that must appear") in a TEST.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/net.h"
#include "ops/ops.h"

namespace crema {

/// How values that are not given are drawn. distinct: an even grid from low to high, shuffled, so
/// that no two values are equal or closer than (high - low) / count, and 0 is not hit where low =
/// -high and count is even (maxima, kinks). integer: whole numbers in [low, high) (labels,
/// indices).
enum class Draw : uint8_t { uniform, distinct, integer };

struct LayerInput {
  std::string name{};
  Shape shape{};
  std::vector<float> values{};  // empty: drawn
  Draw draw = Draw::uniform;
  float low = -1, high = 1;
  bool gradient = true;  // false: a label or index, whose gradient is neither expected nor checked
};

using BlobValues = std::map<std::string, std::vector<float>>;

struct LayerCase {
  std::string name{};                // letters, digits and _
  std::string layer{};               // one or more layer { ... }
  std::vector<LayerInput> inputs{};  // their Input layers are put in front
  /// Values of the net's parameters, owners in file order; missing or empty: learnable ones are
  /// drawn from [-1, 1], statistics keep their filler's value.
  std::vector<std::vector<float>> params{};
  // ---- What is known ----
  BlobValues expect{};  // of any blob, after one forward
  std::map<std::string, Shape> shapes{};
  BlobValues
      top_gradients{};  // an output's weights in the loss; those not named are drawn from [-1, 1]
  BlobValues expect_gradients{};  // of inputs
  std::vector<std::vector<float>>
      params_after{};  // after one forward (statistics); empty: not checked
  // ---- How it is run ----
  Phase phase = TRAIN;
  bool backward = true;        // false: no loss is put on, only forward is run
  bool check_gradient = true;  // against central differences
  std::vector<std::string>
      no_loss{};              // outputs that take no gradient (second tops of losses, masks)
  bool in_place = false;      // also with top 0 of the first layer written onto its bottom 0
  bool channels_last = true;  // also in nhwc
  bool exact_repeat = true;   // false: forward draws anew or changes what it reads
  float tolerance =
      1e-4f;  // of values and of gradients between runs: relative to the blob's largest magnitude
  float gradient_tolerance = 5e-3f;  // of gradients against differences, likewise
  float step = 1e-2f;                // of the differences; must be less than the distance to a kink
  uint64_t seed = 1;
};

// ---- For tests that need more than a row ----

struct LayerRunOptions {
  std::shared_ptr<Ops> ops{};  // default: ReferenceOps
  bool channels_last = false, in_place = false;
  bool planned = false;  // memory planned and fusion on; inner blobs are then not readable
  int forwards = 1, backwards = 1;
};

struct LayerRun {
  std::map<std::string, Shape> shapes{};
  BlobValues blobs{};      // outputs; without `planned` every blob
  BlobValues gradients{};  // of inputs
  std::vector<std::vector<float>> params{},
      param_gradients{};  // after the run; empty gradient: there is none
  double loss = 0;        // in float64 from the outputs
};

/// Builds the row's net and runs it. Throws Error as Net does.
LayerRun run_layer(const LayerCase& test, const LayerRunOptions& options = {});

/// The whole check of a row on one device; failures are reported through gtest.
void check_layer(const LayerCase& test, const std::shared_ptr<Ops>& ops);

/// Building the net, or its forward or backward, must throw Error whose message has the text in it.
void expect_error(const LayerCase& test, const std::string& text);
/// The same for a whole net's prototxt (its own Input layers), inputs zero.
void expect_error(const std::string& net, const std::string& text);

/// Equal within tolerance * max(1e-3, largest magnitude of expected); NaN and infinities must stand
/// at the same places.
testing::AssertionResult values_near(const std::vector<float>& actual,
                                     const std::vector<float>& expected, float tolerance);

/// The fixture of every row: LayerCases.Cpu, CpuThreads and Gpu (skipped where there is none).
class LayerCases : public testing::TestWithParam<LayerCase> {};
inline std::string case_name(const testing::TestParamInfo<LayerCase>& info) {
  return info.param.name;
}
inline void PrintTo(const LayerCase& test, std::ostream* out) { *out << test.name; }

}  // namespace crema
