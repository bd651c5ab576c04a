// Fillers: distributions, the quirks that trained nets depend on, and refusals.
#include "layers/filler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace crema {
namespace {

FillerParameter filler(const std::string& type) {
  FillerParameter param;
  param.set_type(type);
  return param;
}

std::vector<float> fill(const FillerParameter& param, const Shape& shape, uint64_t key = 7) {
  std::vector<float> values(static_cast<size_t>(shape.count()), NAN);
  RandomStream random(key);
  fill_values(param, shape, random, values);
  return values;
}

double mean(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double deviation(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += (v - mean(values)) * (v - mean(values));
  return std::sqrt(sum / static_cast<double>(values.size()));
}

void expect_refusal(const FillerParameter& param, const Shape& shape, const std::string& text) {
  try {
    fill(param, shape);
    ADD_FAILURE() << "no Error; expected " << text;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(Filler, Constant) {
  EXPECT_EQ(fill(FillerParameter(), {2, 2}), std::vector<float>(4, 0));
  FillerParameter param = filler("constant");
  param.set_value(0.5f);
  EXPECT_EQ(fill(param, {3}), std::vector<float>(3, 0.5f));
  EXPECT_EQ(fill(param, Shape{}), std::vector<float>(1, 0.5f)) << "a scalar";
}

TEST(Filler, Uniform) {
  FillerParameter param = filler("uniform");
  param.set_min(-1);
  param.set_max(3);
  const std::vector<float> values = fill(param, {100, 100});
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -1);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 3);
  EXPECT_NEAR(mean(values), 1, 0.05);
  EXPECT_NEAR(deviation(values), 4 / std::sqrt(12.0), 0.05);
}

TEST(Filler, Gaussian) {
  FillerParameter param = filler("gaussian");
  param.set_mean(2);
  param.set_std(0.5f);
  const std::vector<float> values = fill(param, {100, 100});
  EXPECT_NEAR(mean(values), 2, 0.02);
  EXPECT_NEAR(deviation(values), 0.5, 0.02);
}

TEST(Filler, SparseGaussianDividesByTheFirstAxis) {
  FillerParameter param = filler("gaussian");
  param.set_sparse(5);
  const std::vector<float> values = fill(param, {20, 500});
  const auto zeros = std::count(values.begin(), values.end(), 0.0f);
  EXPECT_NEAR(static_cast<double>(zeros) / 10000, 0.75, 0.02);
}

TEST(Filler, PositiveUnitballRowsSumToOne) {
  const std::vector<float> values = fill(filler("positive_unitball"), {3, 2, 5});
  for (size_t row = 0; row < 3; ++row) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * 10);
    EXPECT_NEAR(std::accumulate(begin, begin + 10, 0.0), 1, 1e-6);
    EXPECT_GE(*std::min_element(begin, begin + 10), 0);
  }
}

TEST(Filler, FansOfXavierAndMsra) {
  const Shape shape{40, 10, 5, 5};  // fan in 250, fan out 1000
  FillerParameter xavier = filler("xavier"), msra = filler("msra");
  const auto bound = [&] {
    const std::vector<float> values = fill(xavier, shape);
    return *std::max_element(values.begin(), values.end());
  };
  EXPECT_NEAR(bound(), std::sqrt(3.0 / 250), 1e-3);
  EXPECT_NEAR(deviation(fill(msra, shape)), std::sqrt(2.0 / 250), 2e-3);
  xavier.set_variance_norm(FillerParameter::FAN_OUT);
  msra.set_variance_norm(FillerParameter::AVERAGE);
  EXPECT_NEAR(bound(), std::sqrt(3.0 / 1000), 1e-3);
  EXPECT_NEAR(deviation(fill(msra, shape)), std::sqrt(2.0 / 625), 2e-3);
}

TEST(Filler, NvcaffesStaticOnesDrawTheSame) {
  for (const char* type :
       {"gaussian", "uniform", "positive_unitball", "xavier", "msra", "bilinear"}) {
    EXPECT_EQ(fill(filler(str(type, "static")), {2, 3, 4, 4}), fill(filler(type), {2, 3, 4, 4}))
        << type;
  }
  expect_refusal(filler("constantstatic"), {2}, "unknown filler type \"constantstatic\"");
}

TEST(Filler, FanOutOfOneAxisIsItsCount) {
  FillerParameter param = filler("xavier");
  param.set_variance_norm(FillerParameter::FAN_OUT);
  EXPECT_DOUBLE_EQ(filler_draw(param, {300}).b, std::sqrt(3.0 / 300));
  param.set_variance_norm(FillerParameter::FAN_IN);
  EXPECT_DOUBLE_EQ(filler_draw(param, {300}).b, std::sqrt(3.0));
}

TEST(Filler, Bilinear) {
  const std::vector<float> values = fill(filler("bilinear"), {1, 2, 4, 4});
  const float line[] = {0.25f, 0.75f, 0.75f, 0.25f};
  for (size_t i = 0; i < 32; ++i) EXPECT_FLOAT_EQ(values[i], line[i % 4] * line[i / 4 % 4]) << i;
  const std::vector<float> odd = fill(filler("bilinear"), {1, 1, 3, 3});
  const float odd_line[] = {0.5f, 1, 0.5f};
  for (size_t i = 0; i < 9; ++i) EXPECT_FLOAT_EQ(odd[i], odd_line[i % 3] * odd_line[i / 3]) << i;
}

TEST(Filler, IsAFunctionOfTheKey) {
  for (const char* type : {"uniform", "gaussian", "positive_unitball", "xavier", "msra"}) {
    EXPECT_EQ(fill(filler(type), {5, 6}, 1), fill(filler(type), {5, 6}, 1)) << type;
    EXPECT_NE(fill(filler(type), {5, 6}, 1), fill(filler(type), {5, 6}, 2)) << type;
  }
}

TEST(Filler, Refusals) {
  expect_refusal(filler("gausian"), {2},
                 "unknown filler type \"gausian\" (did you mean gaussian?)");
  expect_refusal(filler("bilinear"), {2, 3}, "needs a blob of 4 axes, not of shape 2 3");
  expect_refusal(filler("bilinear"), {1, 1, 2, 3}, "needs a square kernel, not 2 x 3");
  FillerParameter param = filler("uniform");
  param.set_min(2);
  expect_refusal(param, {2}, "min 2 must not exceed max 1");
  param = filler("gaussian");
  param.set_std(-1);
  expect_refusal(param, {2}, "std must be at least 0");
}

}  // namespace
}  // namespace crema
