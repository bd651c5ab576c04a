// The oracle itself: numbers worked out by hand, and every gradient against differences of the
// forward pass.
#include "reference/reference.h"

#include <cmath>

#include "ops/ops_harness.h"

namespace crema {
namespace {

class Reference : public testing::Test {
 protected:
  Reference() : side_(make_reference_ops()) {}
  ~Reference() override { side_.check_memory(); }

  CTensor given(const Shape& shape, const std::vector<float>& values) {
    return side_.input({.shape = shape}, values);
  }
  Tensor wanted(const Shape& shape) { return side_.output({.shape = shape}); }
  void expect(CTensor actual, const std::vector<float>& expected) {
    const std::vector<float> values = side_.read(actual);
    ASSERT_EQ(values.size(), expected.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-6) << i;
  }
  /// Gradient as a tensor to be overwritten.
  Grad gradient(const Shape& shape) { return {wanted(shape), Write::overwrite}; }

  Side side_;
};

ConvDesc conv(const Shape& x, const Shape& w, const Shape& y) {
  const int axes = x.axes() - 2;
  ConvDesc desc;
  desc.x.shape = x;
  desc.w.shape = w;
  desc.y.shape = y;
  desc.pad = dims_of({}, axes, 0);
  desc.stride = desc.dilation = dims_of({}, axes, 1);
  return desc;
}

TEST_F(Reference, ConvolutionDoesNotFlip) {
  const auto plan = side_.ops().plan(conv({1, 1, 4}, {1, 1, 2}, {1, 1, 3}));
  const CTensor x = given({1, 1, 4}, {1, 2, 3, 4}), w = given({1, 1, 2}, {10, 1});
  const CTensor dy = given({1, 1, 3}, {1, 0, 2});
  plan->weights_changed(w);
  const Tensor y = wanted({1, 1, 3});
  plan->forward(x, w, {}, {}, y);
  expect(y, {12, 23, 34});
  const Grad dx = gradient({1, 1, 4}), dw = gradient({1, 1, 2}), db = gradient({1});
  plan->backward_data(dy, w, dx);
  plan->backward_params(x, dy, dw, db);
  expect(dx.t, {10, 1, 20, 2});
  expect(dw.t, {7, 10});
  expect(db.t, {3});
}

TEST_F(Reference, ConvolutionWithStridePadDilationBias) {
  ConvDesc desc = conv({1, 1, 5}, {1, 1, 2}, {1, 1, 3});
  desc.pad[0] = 1;
  desc.stride[0] = 2;
  desc.dilation[0] = 2;
  desc.bias = true;
  const auto plan = side_.ops().plan(desc);
  const CTensor w = given({1, 1, 2}, {1, 10});
  plan->weights_changed(w);
  const Tensor y = wanted({1, 1, 3});
  plan->forward(given({1, 1, 5}, {1, 2, 3, 4, 5}), w, given({1}, {100}), {}, y);
  expect(y, {120, 142, 104});  // windows (pad, x1), (x1, x3), (x3, pad)
}

TEST_F(Reference, ConvolutionGroupsSeeTheirChannels) {
  ConvDesc desc = conv({1, 4, 1}, {2, 2, 1}, {1, 2, 1});
  desc.groups = 2;
  desc.residual = true;
  desc.act = {ActKind::relu, 0.5f};
  const auto plan = side_.ops().plan(desc);
  const CTensor w = given({2, 2, 1}, {1, 10, 100, -1000});
  plan->weights_changed(w);
  const Tensor y = wanted({1, 2, 1});
  plan->forward(given({1, 4, 1}, {1, 2, 3, 4}), w, {}, given({1, 2, 1}, {0.5f, 1}), y);
  expect(y, {21.5f, -1849.5f});
}

TEST_F(Reference, ForgottenWeightsChangedIsFoundOut) {
  const auto plan = side_.ops().plan(LinearDesc{.m = 1, .k = 1, .n = 1, .act = {}});
  EXPECT_ANY_THROW(plan->forward(given({1, 1}, {1}), given({1, 1}, {1}), {}, wanted({1, 1})));
}

TEST_F(Reference, InnerProductEitherWayRound) {
  const CTensor x = given({1, 2}, {3, 5}), dy = given({1, 3}, {1, 10, 100});
  for (const bool transposed : {false, true}) {
    const auto plan = side_.ops().plan(
        LinearDesc{.m = 1, .k = 2, .n = 3, .transposed = transposed, .bias = true, .act = {}});
    const CTensor w =
        transposed ? given({2, 3}, {1, 3, 5, 2, 4, 6}) : given({3, 2}, {1, 2, 3, 4, 5, 6});
    plan->weights_changed(w);
    const Tensor y = wanted({1, 3});
    plan->forward(x, w, given({3}, {0.5f, 0, -1}), y);
    expect(y, {13.5f, 29, 44});
    const Grad dx = gradient({1, 2}), dw = gradient(w.shape()), db = gradient({3});
    plan->backward_data(dy, w, dx);
    plan->backward_params(x, dy, dw, db);
    expect(dx.t, {531, 642});
    expect(db.t, {1, 10, 100});
    expect(dw.t, transposed ? std::vector<float>{3, 30, 300, 5, 50, 500}
                            : std::vector<float>{3, 5, 30, 50, 300, 500});
  }
}

PoolDesc pool(PoolKind kind, int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t pad) {
  PoolDesc desc;
  desc.kind = kind;
  desc.x.shape = {1, 1, in, in};
  desc.y.shape = {1, 1, out, out};
  desc.kernel = dims_of({kernel}, 2, 1);
  desc.stride = dims_of({stride}, 2, 1);
  desc.pad = dims_of({pad}, 2, 0);
  return desc;
}

TEST_F(Reference, AverageDividesByThePaddedWindow) {
  const auto plan = side_.ops().plan(pool(PoolKind::average, 3, 3, 3, 1, 1));
  const Tensor y = wanted({1, 1, 3, 3});
  plan->forward(given({1, 1, 3, 3}, std::vector<float>(9, 1)), y, {});
  expect(y, {4 / 9.f, 6 / 9.f, 4 / 9.f, 6 / 9.f, 1, 6 / 9.f, 4 / 9.f, 6 / 9.f, 4 / 9.f});
}

TEST_F(Reference,
       AverageClipsTheOverhang) {  // 4 wide, kernel 3, stride 2, pad 1: the last window is [3, 5)
  PoolDesc desc = pool(PoolKind::average, 4, 3, 3, 2, 1);
  const auto plan = side_.ops().plan(desc);
  std::vector<float> x(16, 0);
  x[15] = 6;
  const Tensor y = wanted({1, 1, 3, 3});
  plan->forward(given({1, 1, 4, 4}, x), y, {});
  expect(y, {0, 0, 0, 0, 6 / 9.f, 1, 0, 1, 1.5f});
}

TEST_F(Reference, FirstOfEqualMaximaWins) {
  PoolDesc desc = pool(PoolKind::max, 3, 2, 2, 1, 0);
  desc.mask = true;
  const auto plan = side_.ops().plan(desc);
  const CTensor x = given({1, 1, 3, 3}, {1, 5, 5, 5, 5, 0, NAN, 2, 2});
  const Tensor y = wanted({1, 1, 2, 2}), mask = wanted({1, 1, 2, 2});
  plan->forward(x, y, mask);
  expect(y, {5, 5, 5, 5});
  expect(mask, {1, 1, 3, 4});
  const Grad dx = gradient({1, 1, 3, 3});
  plan->backward(x, y, given({1, 1, 2, 2}, {1, 10, 100, 1000}), dx);
  expect(dx.t, {0, 11, 0, 100, 1000, 0, 0, 0, 0});
}

TEST_F(Reference, LrnDividesBySizeAndNeverFallsBelowK) {
  const auto plan = side_.ops().plan(
      LrnDesc{.x = {.shape = {1, 8}}, .size = 5, .alpha = 1e-4f, .beta = 0.75f, .k = 1});
  const Tensor y = wanted({1, 8});
  plan->forward(given({1, 8}, {1e6f, 0, 0, 0, 0, 0, 0, 0}), y);
  expect(y, {static_cast<float>(1e6 * std::pow(1 + 1e-4 / 5 * 1e12, -0.75)), 0, 0, 0, 0, 0, 0, 0});
}

TEST_F(Reference, LrnWithinIgnoresK) {
  const auto plan = side_.ops().plan(LrnDesc{
      .x = {.shape = {1, 1, 1, 2}}, .size = 3, .alpha = 9, .beta = 1, .k = 5, .within = true});
  const Tensor y = wanted({1, 1, 1, 2});
  plan->forward(given({1, 1, 1, 2}, {1, 2}), y);
  expect(y, {1 / 6.f, 2 / 6.f});  // 1 + 9 * (1 + 4) / 9
}

TEST_F(Reference, BatchNormUsesTheBiasedVariance) {
  const auto plan =
      side_.ops().plan(NormDesc{.x = {.shape = {2, 1}}, .eps = 0.25f, .affine = true, .act = {}});
  const Tensor mean = wanted({1}), variance = wanted({1}), y = wanted({2, 1});
  plan->forward(given({2, 1}, {1, 3}), mean, variance, given({1}, {2}), given({1}, {10}), y);
  expect(mean, {2});
  expect(variance, {1});
  const float half = 2 / std::sqrt(1.25f);
  expect(y, {10 - half, 10 + half});
}

TEST_F(Reference, SoftmaxOfExtremes) {
  const auto plan = side_.ops().plan(SoftmaxDesc{.x = {.shape = {3, 2}}});
  const Tensor y = wanted({3, 2});
  plan->forward(given({3, 2}, {0, std::log(3.f), 1e30f, -1e30f, 0, 200}), y);
  expect(y, {0.25f, 0.75f, 1, 0, 0, 1});
}

TEST_F(Reference, UpdateRulesByHand) {
  struct Hand {
    UpdateRule rule;
    float after_one, after_two;
  };
  // w = 1, g = 2 then 1 (no decay), rate 0.5.
  const std::vector<Hand> hands = {
      {{.rule = Rule::sgd, .momentum = 0.5f}, 0, -1},              // v = 1, then 0.5 + 0.5
      {{.rule = Rule::nesterov, .momentum = 0.5f}, -0.5f, -1.5f},  // 1.5 * 1; 1.5 * 1 - 0.5 * 1
      {{.rule = Rule::adagrad, .delta = 0}, 0.5f, 0.5f - 0.5f / std::sqrt(5.f)},
      {{.rule = Rule::rmsprop, .rms_decay = 0.75f, .delta = 0},
       0,
       -0.5f},  // h = 1, then 0.75 + 0.25
      {{.rule = Rule::adadelta, .momentum = 0.75f, .delta = 1}, 1 - std::sqrt(0.5f), 0},
      {{.rule = Rule::adam, .momentum = 0.5f, .momentum2 = 0.75f, .delta = 0}, 0.5f, 0},
  };
  for (const Hand& hand : hands) {
    SCOPED_TRACE(static_cast<int>(hand.rule.rule));
    const Tensor master = side_.inout({.shape = {1}}, {1});
    const std::vector<Tensor> state = {side_.inout({.shape = {1}}, {0}),
                                       side_.inout({.shape = {1}}, {0})};
    const size_t histories = static_cast<size_t>(history_count(hand.rule.rule));
    const Tensors histories_used(state.data(), histories);
    side_.ops().set_step({.rate = 0.5f});
    side_.ops().update(hand.rule, given({1}, {2}), histories_used, master, {});
    expect(master, {hand.after_one});
    if (hand.rule.rule == Rule::adadelta || hand.rule.rule == Rule::adam) continue;
    side_.ops().update(hand.rule, given({1}, {1}), histories_used, master, {});
    expect(master, {hand.after_two});
  }
}

TEST_F(Reference, DecayIsOfTheWeightOrItsSign) {
  for (const bool l1 : {false, true}) {
    const Tensor master = side_.inout({.shape = {2}}, {4, -4});
    const std::vector<Tensor> state = {side_.inout({.shape = {2}}, {0, 0})};
    side_.ops().set_step({.rate = 1, .grad_scale = 0.5f});
    side_.ops().update({.rule = Rule::sgd, .lr_mult = 2, .decay = 0.25f, .l1 = l1},
                       given({2}, {2, 2}), state, master, {});
    expect(master, l1 ? std::vector<float>{1.5f, -5.5f} : std::vector<float>{0, -4});
  }
}

// ---- Gradients against differences ----

using Forward = std::function<std::vector<float>(const std::vector<float>&)>;

/// gradient is that of sum(weights * forward(x)) at x, along a drawn direction and along single
/// elements.
void check_gradient(const Forward& forward, const std::vector<float>& x,
                    const std::vector<float>& weights, const std::vector<float>& gradient,
                    float step = 1e-2f) {
  const auto loss = [&](const std::vector<float>& at) {
    const std::vector<float> y = forward(at);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(y[i]) * weights[i];
    return sum;
  };
  double scale = 1e-2;
  for (const float g : gradient) scale = std::max<double>(scale, std::abs(g));
  for (size_t i = 0; i < x.size(); ++i) {
    std::vector<float> up = x, down = x;
    up[i] += step;
    down[i] -= step;
    const double difference = (loss(up) - loss(down)) / (static_cast<double>(up[i]) - down[i]);
    EXPECT_NEAR(gradient[i], difference, 2e-3 * scale) << "element " << i;
  }
}

TEST_F(Reference, ConvolutionGradients) {
  ConvDesc desc = conv({2, 4, 5, 4}, {6, 2, 3, 2}, {2, 6, 3, 2});
  desc.groups = 2;
  desc.bias = true;
  desc.stride = dims_of({2}, 2, 1);
  desc.pad = dims_of({1, 1}, 2, 0);
  desc.dilation = dims_of({1, 2}, 2, 1);
  desc.y.shape = {2, 6, 3, 2};
  const auto plan = side_.ops().plan(desc);
  const auto x = random_values(desc.x.count(), 1), w = random_values(desc.w.count(), 2);
  const auto b = random_values(6, 3), dy = random_values(desc.y.count(), 4);
  const auto forward = [&](const std::vector<float>& xv, const std::vector<float>& wv,
                           const std::vector<float>& bv) {
    const CTensor wt = given(desc.w.shape, wv);
    plan->weights_changed(wt);
    const Tensor y = wanted(desc.y.shape);
    plan->forward(given(desc.x.shape, xv), wt, given({6}, bv), {}, y);
    return side_.read(y);
  };
  forward(x, w, b);
  const Grad dx = gradient(desc.x.shape), dw = gradient(desc.w.shape), db = gradient({6});
  const CTensor dyt = given(desc.y.shape, dy);
  plan->backward_data(dyt, {}, dx);
  plan->backward_params(given(desc.x.shape, x), dyt, dw, db);
  check_gradient([&](const auto& v) { return forward(v, w, b); }, x, dy, side_.read(dx.t));
  check_gradient([&](const auto& v) { return forward(x, v, b); }, w, dy, side_.read(dw.t));
  check_gradient([&](const auto& v) { return forward(x, w, v); }, b, dy, side_.read(db.t));
}

TEST_F(Reference, AveragePoolGradient) {
  PoolDesc desc = pool(PoolKind::average, 4, 3, 3, 2, 1);
  const auto plan = side_.ops().plan(desc);
  const auto x = random_values(16, 1), dy = random_values(9, 2);
  const Grad dx = gradient(desc.x.shape);
  plan->backward({}, {}, given(desc.y.shape, dy), dx);
  const auto forward = [&](const std::vector<float>& v) {
    const Tensor y = wanted(desc.y.shape);
    plan->forward(given(desc.x.shape, v), y, {});
    return side_.read(y);
  };
  check_gradient(forward, x, dy, side_.read(dx.t));
}

TEST_F(Reference, LrnGradients) {
  for (const bool within : {false, true}) {
    const LrnDesc desc{.x = {.shape = {1, 4, 3, 3}},
                       .size = 3,
                       .alpha = 2,
                       .beta = 0.6f,
                       .k = 1.5f,
                       .within = within};
    const auto plan = side_.ops().plan(desc);
    const auto x = random_values(36, 1), dy = random_values(36, 2);
    const Grad dx = gradient(desc.x.shape);
    plan->backward(given(desc.x.shape, x), {}, given(desc.x.shape, dy), dx);
    const auto forward = [&](const std::vector<float>& v) {
      const Tensor y = wanted(desc.x.shape);
      plan->forward(given(desc.x.shape, v), y);
      return side_.read(y);
    };
    check_gradient(forward, x, dy, side_.read(dx.t));
  }
}

TEST_F(Reference, SoftmaxGradient) {
  const SoftmaxDesc desc{.x = {.shape = {2, 5, 3}}, .axis = 1};
  const auto plan = side_.ops().plan(desc);
  const auto x = random_values(30, 1), dy = random_values(30, 2);
  const auto forward = [&](const std::vector<float>& v) {
    const Tensor y = wanted(desc.x.shape);
    plan->forward(given(desc.x.shape, v), y);
    return side_.read(y);
  };
  const Grad dx = gradient(desc.x.shape);
  plan->backward(given(desc.x.shape, forward(x)), given(desc.x.shape, dy), dx);
  check_gradient(forward, x, dy, side_.read(dx.t));
}

TEST_F(Reference, BatchNormGradients) {
  for (const bool global : {false, true}) {
    const NormDesc desc{.x = {.shape = {3, 2, 4}},
                        .eps = 0.01f,
                        .global_stats = global,
                        .affine = true,
                        .act = {ActKind::elu, 0.5f}};
    const auto plan = side_.ops().plan(desc);
    const auto x = random_values(24, 1), dy = random_values(24, 2);
    const auto gamma = random_values(2, 3), beta = random_values(2, 4);
    const Tensor mean = side_.inout({.shape = {2}}, {0.1f, -0.2f}),
                 variance = side_.inout({.shape = {2}}, {0.5f, 2});
    const auto forward = [&](const std::vector<float>& xv, const std::vector<float>& gv,
                             const std::vector<float>& bv) {
      const Tensor y = wanted(desc.x.shape);
      plan->forward(given(desc.x.shape, xv), mean, variance, given({2}, gv), given({2}, bv), y);
      return side_.read(y);
    };
    const CTensor y = given(desc.x.shape, forward(x, gamma, beta));
    const Grad dx = gradient(desc.x.shape), dgamma = gradient({2}), dbeta = gradient({2});
    plan->backward(given(desc.x.shape, x), y, mean, variance, given({2}, gamma),
                   given(desc.x.shape, dy), dx, dgamma, dbeta);
    check_gradient([&](const auto& v) { return forward(v, gamma, beta); }, x, dy, side_.read(dx.t));
    check_gradient([&](const auto& v) { return forward(x, v, beta); }, gamma, dy,
                   side_.read(dgamma.t));
    check_gradient([&](const auto& v) { return forward(x, gamma, v); }, beta, dy,
                   side_.read(dbeta.t));
  }
}

TEST_F(Reference, AccumulateAdds) {
  const Tensor c = side_.inout({.shape = {1, 1}}, {5});
  side_.ops().gemm(false, false, 2, given({1, 2}, {3, 4}), given({2, 1}, {1, 10}), c,
                   Write::accumulate);
  expect(c, {91});
}

}  // namespace
}  // namespace crema
