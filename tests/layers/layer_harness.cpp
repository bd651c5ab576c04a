// What a row of layer_harness.h checks.
#include "layers/layer_harness.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "io/prototxt.h"
#include "layers/layer_runner.h"
#include "ops/cpu/parallel.h"
#include "reference/reference.h"

namespace crema {
namespace {

constexpr size_t kMostDifferences = 64;  // elements of a blob that are checked against differences
constexpr float kSmallestScale = 1e-3f;

void compare_runs(const LayerRun& actual, const LayerRun& expected, const LayerCase& test) {
  for (const auto& [blob, values] : expected.blobs) {
    const auto it = actual.blobs.find(blob);
    if (it == actual.blobs.end() || actual.shapes.at(blob) != expected.shapes.at(blob)) continue;
    EXPECT_TRUE(values_near(it->second, values, test.tolerance)) << "blob " << blob;
  }
  for (const auto& [blob, values] : expected.gradients) {
    const auto it = actual.gradients.find(blob);
    if (it == actual.gradients.end()) continue;
    EXPECT_TRUE(values_near(it->second, values, test.tolerance)) << "gradient of " << blob;
  }
  ASSERT_EQ(actual.params.size(), expected.params.size());
  for (size_t i = 0; i < expected.params.size(); ++i) {
    EXPECT_TRUE(values_near(actual.params[i], expected.params[i], test.tolerance))
        << "parameter " << i << " afterwards";
    EXPECT_TRUE(values_near(actual.param_gradients[i], expected.param_gradients[i], test.tolerance))
        << "gradient of parameter " << i;
  }
}

template <class Map>
const typename Map::mapped_type& at(const Map& map, const std::string& name) {
  const auto it = map.find(name);
  if (it == map.end()) fail("the row names blob \"", name, "\", which the net has not");
  return it->second;
}

void check_expectations(const LayerRun& run, const LayerCase& test) {
  for (const auto& [blob, values] : test.expect) {
    EXPECT_TRUE(values_near(at(run.blobs, blob), values, test.tolerance)) << "blob " << blob;
  }
  for (const auto& [blob, shape] : test.shapes) EXPECT_EQ(at(run.shapes, blob), shape) << blob;
  for (const auto& [blob, values] : test.expect_gradients) {
    EXPECT_TRUE(values_near(at(run.gradients, blob), values, test.tolerance))
        << "gradient of " << blob;
  }
  for (size_t i = 0; i < test.params_after.size(); ++i) {
    ASSERT_LT(i, run.params.size());
    EXPECT_TRUE(values_near(run.params[i], test.params_after[i], test.tolerance))
        << "parameter " << i << " afterwards";
  }
}

/// Which elements of a blob are checked: all, or an even choice.
std::vector<size_t> chosen_elements(size_t count) {
  std::vector<size_t> chosen;
  const size_t steps = std::min(count, kMostDifferences);
  for (size_t i = 0; i < steps; ++i) chosen.push_back(i * count / steps);
  return chosen;
}

using Setter = std::function<void(const std::vector<float>&)>;

/// gradient against central differences of the loss in values, which set() puts into the net.
void check_differences(LayerRunner& runner, const LayerCase& test, const std::vector<float>& values,
                       const std::vector<float>& gradient, const Setter& set) {
  ASSERT_EQ(values.size(), gradient.size());
  float scale = 10 * kSmallestScale;
  for (const float g : gradient) scale = std::max(scale, std::abs(g));
  const auto loss_at = [&](size_t i, float value) {
    std::vector<float> moved = values;
    moved[i] = value;
    set(moved);
    runner.forward();
    return runner.objective();
  };
  for (const size_t i : chosen_elements(values.size())) {
    const float up = values[i] + test.step, down = values[i] - test.step;
    const double difference =
        (loss_at(i, up) - loss_at(i, down)) / (static_cast<double>(up) - down);
    EXPECT_NEAR(gradient[i], difference, test.gradient_tolerance * scale)
        << "element " << i << " of value " << values[i];
  }
  set(values);
}

void check_gradients(const LayerCase& test) {
  LayerRunner runner(test, {});
  runner.forward();
  runner.net().clear_gradients();
  runner.net().backward();
  const LayerRun run = runner.results();
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    const LayerInput& input = test.inputs[i];
    if (!input.gradient) continue;
    SCOPED_TRACE("input " + input.name);
    check_differences(runner, test, runner.input_values(i), run.gradients.at(input.name),
                      [&](const std::vector<float>& v) { runner.net().set_blob(input.name, v); });
  }
  const std::vector<int> places = runner.params();
  for (size_t i = 0; i < places.size(); ++i) {
    if (run.param_gradients[i].empty()) continue;
    SCOPED_TRACE(str("parameter ", i));
    check_differences(runner, test, run.params[i], run.param_gradients[i],
                      [&](const std::vector<float>& values) {
                        runner.net().set_param_values(places[i], values);
                        runner.net().params_changed();
                      });
  }
}

/// Forward again gives the same bits, a second backward adds to parameter gradients.
void check_repeats(const LayerCase& test, const LayerRun& once, const LayerRunOptions& options) {
  LayerRunOptions twice = options;
  twice.forwards = test.exact_repeat ? 2 : 1;
  twice.backwards = test.backward ? 2 : 0;
  const LayerRun again = run_layer(test, twice);
  if (test.exact_repeat) {
    for (const auto& [blob, values] : once.blobs) {
      const std::vector<float>& repeated = again.blobs.at(blob);
      ASSERT_EQ(values.size(), repeated.size());
      EXPECT_EQ(0, std::memcmp(values.data(), repeated.data(), values.size() * sizeof(float)))
          << "other bits the second time: blob " << blob;
    }
  }
  for (size_t i = 0; i < once.param_gradients.size(); ++i) {
    std::vector<float> doubled = once.param_gradients[i];
    for (float& g : doubled) g *= 2;
    EXPECT_TRUE(values_near(again.param_gradients[i], doubled, test.tolerance))
        << "after two backward passes, gradient of parameter " << i;
  }
}

bool has_spatial_axes(const LayerCase& test) {
  return std::any_of(test.inputs.begin(), test.inputs.end(),
                     [](const LayerInput& input) { return input.shape.axes() >= 3; });
}

void check_variant(const LayerCase& test, const LayerRun& base, const LayerRunOptions& options,
                   const char* what) {
  SCOPED_TRACE(what);
  const LayerRun run = run_layer(test, options);
  compare_runs(run, base, test);
}

void run_row(const LayerCase& test, const std::shared_ptr<Ops>& ops) {
  const bool oracle = ops == nullptr;
  LayerRun base = run_layer(test);
  if (oracle) {
    check_expectations(base, test);
    if (test.backward && test.check_gradient) check_gradients(test);
  } else {
    check_variant(test, base, {.ops = ops}, "nchw");
    check_expectations(run_layer(test, {.ops = ops}), test);
  }
  {
    SCOPED_TRACE("twice");
    check_repeats(test, run_layer(test, {.ops = ops}), {.ops = ops});
  }
  check_variant(test, base, {.ops = ops, .planned = true}, "planned memory, fusion on");
  if (test.channels_last && has_spatial_axes(test)) {
    check_variant(test, base, {.ops = ops, .channels_last = true}, "nhwc");
    check_variant(test, base, {.ops = ops, .channels_last = true, .planned = true},
                  "nhwc, planned memory, fusion on");
  }
  if (test.in_place) {
    check_variant(test, base, {.ops = ops, .in_place = true}, "in place");
    check_variant(test, base, {.ops = ops, .in_place = true, .planned = true},
                  "in place, planned memory, fusion on");
  }
}

/// As many threads for any amount of work as long as it lives.
class Threads {
 public:
  explicit Threads(int count) {
    omp_set_num_threads(count);
    work_per_thread = 1;
  }
  ~Threads() {
    omp_set_num_threads(count_before_);
    work_per_thread = work_before_;
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  const int count_before_ = omp_get_max_threads();
  const int64_t work_before_ = work_per_thread;
};

LayerRun run_with(int threads, const LayerCase& test, LayerRunOptions options) {
  const Threads set(threads);
  options.ops = make_ops({});
  return run_layer(test, options);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

void expect_same_bits(const LayerRun& a, const LayerRun& b) {
  for (const auto& [blob, values] : a.blobs)
    EXPECT_TRUE(same_bits(values, at(b.blobs, blob))) << blob;
  for (const auto& [blob, values] : a.gradients) {
    EXPECT_TRUE(same_bits(values, at(b.gradients, blob))) << "gradient of " << blob;
  }
  for (size_t i = 0; i < a.params.size(); ++i) {
    EXPECT_TRUE(same_bits(a.params[i], b.params[i])) << "parameter " << i;
    EXPECT_TRUE(same_bits(a.param_gradients[i], b.param_gradients[i]))
        << "gradient of parameter " << i;
  }
}

/// Equal to rounding for 1, 2 and 4 threads, and equal bits from run to run.
void check_threads(const LayerCase& test) {
  for (const bool channels_last : {false, true}) {
    if (channels_last && !(test.channels_last && has_spatial_axes(test))) continue;
    const LayerRunOptions options{.channels_last = channels_last};
    const LayerRun one = run_with(1, test, options);
    for (const int threads : {2, 4}) {
      SCOPED_TRACE(str(threads, " threads, ", channels_last ? "nhwc" : "nchw"));
      const LayerRun many = run_with(threads, test, options);
      compare_runs(many, one, test);
      expect_same_bits(many, run_with(threads, test, options));
    }
  }
}

void expect_throw(const std::function<void()>& f, const std::string& text) {
  try {
    f();
    ADD_FAILURE() << "no Error; expected \"" << text << '"';
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos)
        << "\"" << text << "\" is not in: " << error.what();
  }
}

}  // namespace

LayerRun run_layer(const LayerCase& test, const LayerRunOptions& options) {
  LayerRunner runner(test, options);
  for (int i = 0; i < options.forwards; ++i) runner.forward();
  if (test.backward) runner.net().clear_gradients();
  for (int i = 0; test.backward && i < options.backwards; ++i) runner.net().backward();
  return runner.results();
}

void check_layer(const LayerCase& test, const std::shared_ptr<Ops>& ops) {
  try {
    run_row(test, ops);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

void expect_error(const LayerCase& test, const std::string& text) {
  SCOPED_TRACE(test.name);
  expect_throw([&] { run_layer(test); }, text);
}

void expect_error(const std::string& net_text, const std::string& text) {
  SCOPED_TRACE(net_text);
  expect_throw(
      [&] {
        NetParameter param;
        parse_text(net_text, "net", &param);
        NetOptions options;
        options.phase = TRAIN;
        options.train = true;
        options.log = false;
        Net net(param, options, make_reference_ops());
        net.forward();
        net.backward();
      },
      text);
}

testing::AssertionResult values_near(const std::vector<float>& actual,
                                     const std::vector<float>& expected, float tolerance) {
  if (actual.size() != expected.size()) {
    return testing::AssertionFailure() << actual.size() << " values instead of " << expected.size();
  }
  float scale = kSmallestScale;
  for (const float value : expected) {
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool same =
        (std::isnan(actual[i]) && std::isnan(expected[i])) || actual[i] == expected[i];
    if (same || std::abs(actual[i] - expected[i]) <= tolerance * scale) continue;
    return testing::AssertionFailure()
           << "element " << i << " of " << expected.size() << " is " << actual[i] << ", expected "
           << expected[i] << " (largest magnitude " << scale << ")";
  }
  return testing::AssertionSuccess();
}

TEST_P(LayerCases, Reference) { check_layer(GetParam(), nullptr); }

TEST_P(LayerCases, Cpu) { check_layer(GetParam(), make_ops({})); }

TEST_P(LayerCases, CpuThreads) { check_threads(GetParam()); }

TEST_P(LayerCases, Gpu) {
  if (!gpu_present()) GTEST_SKIP() << "no GPU here";
  check_layer(GetParam(), make_ops({.gpu = true}));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LayerCases);

}  // namespace crema
