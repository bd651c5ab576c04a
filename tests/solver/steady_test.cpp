// A training run as a steady state: an iteration allocates nothing (our code) or little
// (libraries), the same run gives the same bits, and other thread counts the same values.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <memory>

#include "feed/datum.h"
#include "feed/lmdb_writer.h"
#include "solver/allocations.h"
#include "solver/solver_harness.h"

namespace crema {
namespace {

constexpr size_t kMostOfLibraries = 4096;  // bytes at a time

/// 48 raw pictures of 3 x 14 x 14 in four classes.
void write_pictures() {
  LmdbWriter writer("pictures");
  for (int i = 0; i < 48; ++i) {
    std::string pixels;
    for (int k = 0; k < 3 * 14 * 14; ++k) pixels += static_cast<char>(i * 31 + k * k % 97);
    writer.put(record_key(i), write_datum({3, 14, 14, i % 4, false, {}}, pixels));
  }
  writer.finish();
}

struct Run {
  std::string name, solver, layers;  // layers: from blob "data" to blob "scores"
};

const std::string kLoop = R"(
  base_lr: 0.01 lr_policy: 'inv' gamma: 0.001 power: 0.75 max_iter: 100 random_seed: 3
  snapshot_prefix: 's' )";
const std::string kSource = R"(
    layer { name: 'data' type: 'Data' top: 'data' top: 'label'
      data_param { source: 'pictures' batch_size: 8 shuffle: true }
      transform_param { crop_size: 12 mirror: true scale: 0.01 } })";
const std::string kEnd = R"(
    layer { name: 'scores' type: 'InnerProduct' bottom: 'features' top: 'scores'
      inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }
    layer { name: 'accuracy' type: 'Accuracy' bottom: 'scores' bottom: 'label' top: 'accuracy' }
    layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'scores' bottom: 'label' top: 'loss' })";

const std::string kResidual = R"(
    layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
      convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: 'xavier' } } }
    layer { name: 'bn' type: 'BatchNorm' bottom: 'conv' top: 'bn' }
    layer { name: 'scale' type: 'Scale' bottom: 'bn' top: 'bn' scale_param { bias_term: true } }
    layer { name: 'relu' type: 'ReLU' bottom: 'bn' top: 'bn' }
    layer { name: 'depthwise' type: 'Convolution' bottom: 'bn' top: 'depthwise'
      convolution_param { num_output: 16 group: 16 kernel_size: 3 pad: 1
        weight_filler { type: 'xavier' } } }
    layer { name: 'conv2' type: 'Convolution' bottom: 'depthwise' top: 'conv2'
      convolution_param { num_output: 16 kernel_size: 1 weight_filler { type: 'xavier' } } }
    layer { name: 'sum' type: 'Eltwise' bottom: 'conv2' bottom: 'bn' top: 'sum' }
    layer { name: 'relu2' type: 'ReLU' bottom: 'sum' top: 'sum' }
    layer { name: 'norm' type: 'LRN' bottom: 'sum' top: 'norm' }
    layer { name: 'pool' type: 'Pooling' bottom: 'norm' top: 'pool'
      pooling_param { kernel_size: 3 stride: 2 } }
    layer { name: 'both' type: 'Concat' bottom: 'pool' bottom: 'pool' top: 'both' }
    layer { name: 'features' type: 'Dropout' bottom: 'both' top: 'features' })";

const std::string kBranches = R"(
    layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
      convolution_param { num_output: 12 kernel_size: 5 stride: 2 group: 3
        weight_filler { type: 'msra' } } }
    layer { name: 'slope' type: 'PReLU' bottom: 'conv' top: 'conv' }
    layer { name: 'up' type: 'Deconvolution' bottom: 'conv' top: 'up'
      convolution_param { num_output: 6 kernel_size: 2 stride: 2 weight_filler { type: 'xavier' } } }
    layer { name: 'parts' type: 'Slice' bottom: 'up' top: 'left' top: 'right' }
    layer { name: 'sigmoid' type: 'Sigmoid' bottom: 'left' top: 'gate' }
    layer { name: 'mean' type: 'Pooling' bottom: 'right' top: 'mean'
      pooling_param { pool: AVE kernel_size: 3 stride: 1 pad: 1 } }
    layer { name: 'product' type: 'Eltwise' bottom: 'gate' bottom: 'mean' top: 'product'
      eltwise_param { operation: PROD } }
    layer { name: 'within' type: 'LRN' bottom: 'product' top: 'within'
      lrn_param { norm_region: WITHIN_CHANNEL local_size: 3 } }
    layer { name: 'flat' type: 'Flatten' bottom: 'within' top: 'flat' }
    layer { name: 'hidden' type: 'InnerProduct' bottom: 'flat' top: 'hidden'
      inner_product_param { num_output: 33 weight_filler { type: 'xavier' } } }
    layer { name: 'features' type: 'TanH' bottom: 'hidden' top: 'features' })";

const std::string kSequence = R"(
    layer { name: 'rows' type: 'Reshape' bottom: 'data' top: 'rows'
      reshape_param { shape { dim: 8 dim: 12 dim: 36 } } }
    layer { name: 'time' type: 'Transpose' bottom: 'rows' top: 'time'
      transpose_param { dim: 1 dim: 0 dim: 2 } }
    layer { name: 'going' type: 'DummyData' top: 'going'
      dummy_data_param { shape { dim: 12 dim: 8 } data_filler { value: 1 } } }
    layer { name: 'lstm' type: 'LSTM' bottom: 'time' bottom: 'going' top: 'lstm'
      recurrent_param { num_output: 16 weight_filler { type: 'xavier' } } }
    layer { name: 'parts' type: 'Slice' bottom: 'lstm' top: 'early' top: 'late'
      slice_param { axis: 0 slice_point: 11 } }
    layer { name: 'quiet' type: 'Silence' bottom: 'early' }
    layer { name: 'features' type: 'Reshape' bottom: 'late' top: 'features'
      reshape_param { shape { dim: 8 dim: 16 } } })";

const std::vector<Run> kRuns = {
    {"sgd", "type: 'SGD' momentum: 0.9 weight_decay: 0.001 clip_gradients: 1000", kResidual},
    {"clipped", "type: 'SGD' momentum: 0.9 clip_gradients: 1000 iter_size: 2", kBranches},
    {"adam", "type: 'Adam' momentum: 0.9 momentum2: 0.999", kSequence},
    {"adamw", "type: 'AdamW' momentum: 0.9 momentum2: 0.999 weight_decay: 0.1", kBranches},
    {"lars", "type: 'LARS' momentum: 0.9 weight_decay: 0.001", kResidual},
    {"lamb", "type: 'LAMB' momentum: 0.9 momentum2: 0.999 weight_decay: 0.01", kBranches},
    {"recompute", "type: 'Nesterov' momentum: 0.9", kResidual},
};

std::unique_ptr<Solver> solver_of(const Run& run) {
  const std::string asks = run.name == "recompute" ? "recompute: true" : "";
  return make_solver(kLoop + run.solver + " net_param { " + asks + kSource + run.layers + kEnd +
                     " }");
}

class Steady : public testing::TestWithParam<Run> {
 protected:
  void SetUp() override { write_pictures(); }

 private:
  WorkFolder folder_;
};

TEST_P(Steady, AnIterationAllocatesNothing) {
  if (!counts_allocations()) GTEST_SKIP() << "this build has another malloc";
  const auto solver = solver_of(GetParam());
  // By then every buffer has its final size: the ring of the feed has gone round, and all epochs
  // but the first are alike.
  solver->step(18);
  for (const Allocation& one : allocations_of([&] { solver->step(8); })) {
    EXPECT_FALSE(one.is_ours) << one.bytes << " bytes by " << one.owner << one.stack;
    EXPECT_LE(one.bytes, kMostOfLibraries) << "by " << one.owner << one.stack;
  }
}

TEST(SteadyCount, SeesOurCodeAndLargePieces) {
  if (!counts_allocations()) GTEST_SKIP() << "this build has another malloc";
  std::vector<float> kept;
  const std::vector<Allocation> found = allocations_of([&] { kept.resize(5000); });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].is_ours) << found[0].owner;
  EXPECT_EQ(found[0].bytes, 5000 * sizeof(float));
  EXPECT_TRUE(allocations_of([&] { kept.resize(1); }).empty());
}

std::vector<float> trained(const Run& run, int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  const auto solver = solver_of(run);
  solver->step(6);
  omp_set_num_threads(before);
  return all_params(*solver);
}

TEST_P(Steady, TheSameRunGivesTheSameBits) {
  for (const int threads : {1, 2, 4}) {
    EXPECT_EQ(trained(GetParam(), threads), trained(GetParam(), threads)) << threads << " threads";
  }
}

TEST_P(Steady, OtherThreadCountsGiveTheSameValues) {
  const std::vector<float> one = trained(GetParam(), 1);
  for (const int threads : {2, 4}) {
    const std::vector<float> many = trained(GetParam(), threads);
    ASSERT_EQ(many.size(), one.size());
    for (size_t i = 0; i < one.size(); ++i) {
      ASSERT_NEAR(many[i], one[i], 2e-4F * std::max(1.0F, std::abs(one[i])))
          << threads << " threads, value " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, Steady, testing::ValuesIn(kRuns),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace crema
