// Memory, step scalars, the fault slot and refusals, on the oracle and on each backend.
#include "base/error.h"
#include "ops/ops_harness.h"
#include "reference/reference.h"

namespace crema {
namespace {

TensorDesc bytes_desc(size_t bytes) {
  return {.shape = {static_cast<int64_t>(bytes)}, .dtype = DType::u8};
}

enum class Which : uint8_t { reference, cpu, gpu };

class Queue : public testing::TestWithParam<Which> {
 protected:
  void SetUp() override {
    if (GetParam() == Which::gpu && !gpu_present()) GTEST_SKIP() << "no GPU here";
    ops_ = GetParam() == Which::reference ? make_reference_ops()
           : GetParam() == Which::cpu     ? make_ops({})
                                          : make_ops({.gpu = true});
  }

  std::shared_ptr<Ops> ops_;
};

TEST_P(Queue, MemoryIsAlignedAndZero) {
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{100000}}) {
    for (const Memory kind : {Memory::device, Memory::pinned_host}) {
      const Buffer buffer = ops_->allocate(bytes, kind);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.get()) % 64, 0u);
      std::vector<uint8_t> seen(bytes, 1);
      ops_->download({buffer.get(), bytes_desc(bytes)}, seen.data());
      EXPECT_EQ(seen, std::vector<uint8_t>(bytes, 0));
    }
  }
}

TEST_P(Queue, AllocatesNothing) { EXPECT_NO_THROW(ops_->allocate(0, Memory::device)); }

TEST_P(Queue, UploadsAndDownloadsEveryType) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::u8}) {
    const TensorDesc desc{.shape = {3, 5}, .dtype = dtype};
    const Buffer buffer = ops_->allocate(desc.bytes(), Memory::device);
    std::vector<uint8_t> sent(desc.bytes()), seen(desc.bytes());
    for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<uint8_t>(7 * i);
    ops_->upload(sent.data(), {buffer.get(), desc});
    ops_->download({buffer.get(), desc}, seen.data());
    EXPECT_EQ(seen, sent);
  }
}

TEST_P(Queue, KernelsSeeTheStepScalars) {
  ops_->set_step({.rate = 0.5f,
                  .grad_scale = 2,
                  .adam_correction = 3,
                  .iteration = 4,
                  .forward_count = 1ull << 40});
  const StepScalars* at = ops_->step_scalars();
  StepScalars seen;
  ops_->download({at, bytes_desc(sizeof seen)}, &seen);
  EXPECT_EQ(seen.rate, 0.5f);
  EXPECT_EQ(seen.grad_scale, 2);
  EXPECT_EQ(seen.adam_correction, 3);
  EXPECT_EQ(seen.iteration, 4);
  EXPECT_EQ(seen.forward_count, 1ull << 40);
  ops_->set_step({});
  EXPECT_EQ(ops_->step_scalars(), at) << "a captured graph has the address";
}

TEST_P(Queue, AFaultIsTakenOnce) {
  EXPECT_FALSE(ops_->take_fault());
  const Fault fault{.set = 1, .layer = 3, .index = 1ll << 33, .value = 7.5f};
  ops_->upload(&fault, {ops_->fault(), bytes_desc(sizeof fault)});
  const auto taken = ops_->take_fault();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->layer, 3);
  EXPECT_EQ(taken->index, 1ll << 33);
  EXPECT_EQ(taken->value, 7.5f);
  EXPECT_FALSE(ops_->take_fault());
}

TEST_P(Queue, DescribesItself) { EXPECT_FALSE(ops_->describe().empty()); }

TEST_P(Queue, RefusesDoubles) {
  ConvDesc desc;
  desc.x = {.shape = {1, 4, 5, 5}, .dtype = DType::f64};
  desc.y = {.shape = {1, 4, 5, 5}, .dtype = DType::f64};
  desc.w = {.shape = {4, 4, 1, 1}, .dtype = DType::f64};
  desc.pad = dims_of({}, 2, 0);
  desc.stride = desc.dilation = dims_of({}, 2, 1);
  const auto reason = ops_->why_not(desc);
  ASSERT_TRUE(reason);
  try {
    ops_->plan(desc);
    FAIL() << "planned it";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(*reason), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Queue, testing::Values(Which::reference, Which::cpu, Which::gpu),
                         [](const auto& info) {
                           return info.param == Which::reference ? "Reference"
                                  : info.param == Which::cpu     ? "Cpu"
                                                                 : "Gpu";
                         });

TEST(MakeOps, AMissingGpuIsAnError) {
  if (gpu_present()) GTEST_SKIP() << "there is a GPU here";
  EXPECT_THROW(make_ops({.gpu = true}), Error);
}

TEST(ActUnary, NamesTheFormula) {
  EXPECT_EQ(unary_of({ActKind::elu, 0.5f}), Unary::elu);
  EXPECT_EQ(unary_of({ActKind::relu6}), Unary::relu6);
  EXPECT_EQ(unary_args_of({ActKind::relu, 0.25f}).a, 0.25f);
}

}  // namespace
}  // namespace crema
