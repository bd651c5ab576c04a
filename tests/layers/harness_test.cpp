// The harness finds what it is there to find: y = p * x with one thing wrong fails its row.
#include <gtest/gtest-spi.h>

#include <cmath>

#include "layers/layer_harness.h"

namespace crema {
namespace {

enum class Wrong : uint8_t {
  nothing,
  value,
  dx,
  dw,
  never_accumulates,
  other_bits_each_time,
  nhwc,
  reads_overwritten,
  forgets_new_params,
  always_accumulates,
};

CTensor column(CTensor t) { return {t.data, {.shape = {t.count(), 1}}}; }
Tensor column(const Tensor& t) { return {t.data, {.shape = {t.count(), 1}}}; }

template <Wrong kWrong>
class Multiply : public Layer {
 public:
  using Layer::Layer;
  Shapes infer(const Shapes& bottom) override {
    params_.resize(1);
    params_[0].shape = {1};
    return bottom;
  }
  LayerTraits traits() const override {
    return {.any_layout = true,
            .backward_reads_bottoms = kWrong == Wrong::reads_overwritten ? 0 : ~uint64_t{0},
            .backward_reads_tops = 0,
            .can_overwrite_bottom = kWrong == Wrong::reads_overwritten,
            .accumulates = true};
  }
  void params_changed(Ops& ops) override {
    if (kWrong != Wrong::forgets_new_params || !told_) ops.download(params_[0].value, &p_);
    told_ = true;
  }
  void forward(Ops& ops, CTensors bottom, Tensors top) override {
    float factor = p_;
    if (kWrong == Wrong::value) factor *= 1.01f;
    if (kWrong == Wrong::other_bits_each_time) factor *= 1 + 1e-6f * static_cast<float>(calls_++);
    if (kWrong == Wrong::nhwc && bottom[0].desc.layout == Layout::nhwc) factor *= 2;
    ops.unary(Unary::power, {.a = factor, .b = 0, .c = 1}, bottom[0], top[0]);
  }
  void backward(Ops& ops, const BackwardArgs& args) override {
    Write how = args.dparams[0].how;
    if (kWrong == Wrong::never_accumulates) how = Write::overwrite;
    if (kWrong == Wrong::always_accumulates) how = Write::accumulate;
    if (args.dparams[0]) {
      Tensor dp = args.dparams[0].t;
      dp.desc.shape = {1, 1};
      ops.gemm(true, false, kWrong == Wrong::dw ? -1 : 1, column(args.bottom[0]),
               column(args.dtop[0]), dp, how);
    }
    if (!args.dbottom[0]) return;
    CTensor p = params_[0].value;
    p.desc.shape = {1, 1};
    ops.gemm(false, false, kWrong == Wrong::dx ? 1.1f : 1.0f, column(args.dtop[0]), p,
             column(args.dbottom[0].t), args.dbottom[0].how);
  }

 private:
  float p_ = 0;
  bool told_ = false;
  int calls_ = 0;
};

const LayerRegistrar<Multiply<Wrong::nothing>> kNothing{"HarnessMultiply0"};
const LayerRegistrar<Multiply<Wrong::value>> kValue{"HarnessMultiply1"};
const LayerRegistrar<Multiply<Wrong::dx>> kDx{"HarnessMultiply2"};
const LayerRegistrar<Multiply<Wrong::dw>> kDw{"HarnessMultiply3"};
const LayerRegistrar<Multiply<Wrong::never_accumulates>> kNever{"HarnessMultiply4"};
const LayerRegistrar<Multiply<Wrong::other_bits_each_time>> kBits{"HarnessMultiply5"};
const LayerRegistrar<Multiply<Wrong::nhwc>> kNhwc{"HarnessMultiply6"};
const LayerRegistrar<Multiply<Wrong::reads_overwritten>> kReads{"HarnessMultiply7"};
const LayerRegistrar<Multiply<Wrong::forgets_new_params>> kForgets{"HarnessMultiply8"};
const LayerRegistrar<Multiply<Wrong::always_accumulates>> kAlways{"HarnessMultiply9"};

LayerCase row(Wrong wrong) {
  return {.name = "multiply",
          .layer = str("layer { name: \"l\" type: \"HarnessMultiply", static_cast<int>(wrong),
                       "\" bottom: \"x\" top: \"y\" }"),
          .inputs = {{"x", {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}}},
          .params = {{0.5f}},
          .expect = {{"y", {0.5f, 1, 1.5f, 2, 2.5f, 3, 3.5f, 4}}},
          .in_place = wrong == Wrong::reads_overwritten};
}

int failures_of(const LayerCase& test) {
  testing::TestPartResultArray results;
  {
    testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    check_layer(test, nullptr);
  }
  int failures = 0;
  for (int i = 0; i < results.size(); ++i) failures += results.GetTestPartResult(i).failed();
  return failures;
}

TEST(LayerHarness, PassesWhatIsRight) { check_layer(row(Wrong::nothing), nullptr); }

class LayerHarnessFinds : public testing::TestWithParam<std::pair<const char*, Wrong>> {};

TEST_P(LayerHarnessFinds, It) { EXPECT_GT(failures_of(row(GetParam().second)), 0); }

INSTANTIATE_TEST_SUITE_P(Wrong, LayerHarnessFinds,
                         testing::Values(std::pair("value", Wrong::value),
                                         std::pair("dx", Wrong::dx), std::pair("dw", Wrong::dw),
                                         std::pair("never_accumulates", Wrong::never_accumulates),
                                         std::pair("always_accumulates", Wrong::always_accumulates),
                                         std::pair("other_bits", Wrong::other_bits_each_time),
                                         std::pair("nhwc", Wrong::nhwc),
                                         std::pair("reads_overwritten", Wrong::reads_overwritten),
                                         std::pair("forgets_new_params",
                                                   Wrong::forgets_new_params)),
                         [](const auto& info) { return std::string(info.param.first); });

TEST(LayerHarness, FindsAnExpectationThatIsNotMet) {
  LayerCase test = row(Wrong::nothing);
  test.expect_gradients = {{"x", std::vector<float>(8, 0.25f)}};
  EXPECT_GT(failures_of(test), 0);
  test.top_gradients = {{"y", std::vector<float>(8, 0.5f)}};
  EXPECT_EQ(failures_of(test), 0);
  test.shapes = {{"y", {8}}};
  EXPECT_GT(failures_of(test), 0);
}

TEST(LayerHarness, FindsAMissingOrOtherError) {
  EXPECT_NONFATAL_FAILURE(expect_error(row(Wrong::nothing), "anything"), "no Error");
  LayerCase test = row(Wrong::nothing);
  test.layer = "layer { name: \"l\" type: \"NoSuchType\" bottom: \"x\" top: \"y\" }";
  EXPECT_NONFATAL_FAILURE(expect_error(test, "other words"), "is not in");
  expect_error(test, "NoSuchType");
  expect_error("layer { name: \"l\" type: \"NoSuchType\" top: \"y\" }", "NoSuchType");
}

TEST(ValuesNear, PlacesOfNanAndInfinityCount) {
  EXPECT_TRUE(values_near({1, NAN, INFINITY}, {1.00001f, NAN, INFINITY}, 1e-4f));
  EXPECT_FALSE(values_near({1, 1}, {1, NAN}, 1e-4f));
  EXPECT_FALSE(values_near({NAN}, {1}, 1e-4f));
  EXPECT_FALSE(values_near({-INFINITY}, {INFINITY}, 1e-4f));
  EXPECT_FALSE(values_near({1}, {1, 2}, 1e-4f));
  EXPECT_FALSE(values_near({1.1f}, {1}, 1e-2f));
}

}  // namespace
}  // namespace crema
