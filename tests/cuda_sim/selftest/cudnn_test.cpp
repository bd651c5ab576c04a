// The stand-in for cuDNN's backend descriptors: convolutions against values worked out by hand, and
// what it refuses.
#include <cudnn.h>

#include "cuda_sim/selftest/sim_testing.h"

namespace crema::cuda_sim {
namespace {

using Sizes = std::vector<int64_t>;

class DnnTest : public SimTest {
 protected:
  void SetUp() override {
    SimTest::SetUp();
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnCreate(&handle_));
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, cudnnSetStream(handle_, stream_));
  }
  void TearDown() override {
    for (cudnnBackendDescriptor_t d : made_) cudnnBackendDestroyDescriptor(d);
    cudnnDestroy(handle_);
    SimTest::TearDown();
  }

  cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t d = nullptr;
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnBackendCreateDescriptor(type, &d));
    made_.push_back(d);
    return d;
  }
  template <class T>
  static cudnnStatus_t set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, const std::vector<T>& values) {
    return cudnnBackendSetAttribute(d, name, type, static_cast<int64_t>(values.size()),
                                    values.data());
  }
  static void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  const Sizes& values) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, set(d, name, CUDNN_TYPE_INT64, values));
  }
  static void set(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendDescriptor_t other) {
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, set(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                        std::vector<cudnnBackendDescriptor_t>{other}));
  }

  static Sizes strides(const Sizes& s, bool nhwc) {
    return nhwc ? Sizes{s[1] * s[2] * s[3], 1, s[1] * s[3], s[1]}
                : Sizes{s[1] * s[2] * s[3], s[2] * s[3], s[3], 1};
  }
  cudnnBackendDescriptor_t tensor(int64_t id, const Sizes& sizes, bool nhwc = false,
                                  bool is_virtual = false) {
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, strides(sizes, nhwc));
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, Sizes{id});
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, Sizes{4});
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
        std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT});
    if (is_virtual) {
      const bool yes = true;
      cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
    }
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnBackendFinalize(d));
    return d;
  }
  struct How {
    Sizes pad = {0, 0}, stride = {1, 1}, dilation = {1, 1};
  };
  cudnnBackendDescriptor_t convolution(const How& how) {
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
        std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT});
    set(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
        std::vector<cudnnConvolutionMode_t>{CUDNN_CROSS_CORRELATION});
    set(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, Sizes{2});
    set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, how.dilation);
    set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, how.stride);
    set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, how.pad);
    set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, how.pad);
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnBackendFinalize(d));
    return d;
  }
  enum class Direction { forward, data, filter };
  cudnnBackendDescriptor_t operation(Direction direction, cudnnBackendDescriptor_t x,
                                     cudnnBackendDescriptor_t w, cudnnBackendDescriptor_t y,
                                     const How& how) {
    struct Names {
      cudnnBackendDescriptorType_t type;
      cudnnBackendAttributeName_t x, w, y, conv;
    };
    const Names all[] = {
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC}};
    const Names& names = all[static_cast<int>(direction)];
    cudnnBackendDescriptor_t d = make(names.type);
    set(d, names.x, x);
    set(d, names.w, w);
    set(d, names.y, y);
    set(d, names.conv, convolution(how));
    status_ = cudnnBackendFinalize(d);
    return d;
  }
  cudnnBackendDescriptor_t pointwise(cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x,
                                     cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y) {
    cudnnBackendDescriptor_t how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
        std::vector<cudnnPointwiseMode_t>{mode});
    set(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
        std::vector<cudnnDataType_t>{CUDNN_DATA_FLOAT});
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnBackendFinalize(how));
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    set(d, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set(d, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b != nullptr) set(d, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    set(d, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    status_ = cudnnBackendFinalize(d);
    return d;
  }
  cudnnBackendDescriptor_t graph(const std::vector<cudnnBackendDescriptor_t>& operations) {
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations);
    set(d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
        std::vector<cudnnHandle_t>{handle_});
    status_ = cudnnBackendFinalize(d);
    return d;
  }
  std::vector<cudnnBackendDescriptor_t> configs(cudnnBackendDescriptor_t of_graph,
                                                cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A) {
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, of_graph);
    set(d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE,
        std::vector<cudnnBackendHeurMode_t>{mode});
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnBackendFinalize(d));
    int64_t count = 0;
    cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                             &count, nullptr);
    std::vector<cudnnBackendDescriptor_t> found;
    for (int64_t i = 0; i < count; ++i) found.push_back(make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    EXPECT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, found.data()));
    return found;
  }
  std::vector<cudnnBackendNumericalNote_t> notes(cudnnBackendDescriptor_t config) {
    cudnnBackendDescriptor_t engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    int64_t count = 0;
    EXPECT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                       CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine));
    std::vector<cudnnBackendNumericalNote_t> list(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
    EXPECT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                       CUDNN_TYPE_NUMERICAL_NOTE, static_cast<int64_t>(list.size()),
                                       &count, list.data()));
    list.resize(static_cast<size_t>(count));
    return list;
  }
  cudnnBackendDescriptor_t plan(cudnnBackendDescriptor_t config) {
    cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnBackendFinalize(d));
    return d;
  }
  static int64_t workspace(cudnnBackendDescriptor_t of_plan) {
    int64_t bytes = -1, count = 0;
    EXPECT_EQ(CUDNN_STATUS_SUCCESS,
              cudnnBackendGetAttribute(of_plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                       CUDNN_TYPE_INT64, 1, &count, &bytes));
    return bytes;
  }
  cudnnStatus_t execute(cudnnBackendDescriptor_t of_plan, const Sizes& ids,
                        const std::vector<void*>& pointers, void* room) {
    cudnnBackendDescriptor_t pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids);
    set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
    set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, std::vector<void*>{room});
    EXPECT_EQ(CUDNN_STATUS_SUCCESS, cudnnBackendFinalize(pack));
    return cudnnBackendExecute(handle_, of_plan, pack);
  }
  /// Plays one convolution on every engine that there is for it.
  void check(Direction direction, const std::vector<Sizes>& sizes, bool nhwc, const How& how,
             const std::vector<std::vector<float>>& xwy) {
    cudnnBackendDescriptor_t g =
        graph({operation(direction, tensor('x', sizes[0], nhwc), tensor('w', sizes[1], nhwc),
                         tensor('y', sizes[2], nhwc), how)});
    ASSERT_EQ(CUDNN_STATUS_SUCCESS, status_);
    const size_t result = direction == Direction::forward ? 2
                          : direction == Direction::data  ? 0
                                                          : 1;
    const auto all = configs(g);
    ASSERT_FALSE(all.empty());
    for (cudnnBackendDescriptor_t config : all) {
      std::vector<void*> pointers;
      for (size_t i = 0; i < 3; ++i) {
        pointers.push_back(i == result ? unwritten(xwy[i].size()) : device(xwy[i]));
      }
      cudnnBackendDescriptor_t p = plan(config);
      void* room = unwritten(static_cast<size_t>(workspace(p)) / 4 + 1);
      EXPECT_EQ(CUDNN_STATUS_SUCCESS, execute(p, {'x', 'w', 'y'}, pointers, room));
      EXPECT_EQ(host(static_cast<float*>(pointers[result]), xwy[result].size()), xwy[result]);
    }
  }
  std::string message() {
    char text[200];
    cudnnGetLastErrorString(text, sizeof(text));
    return text;
  }

  cudnnHandle_t handle_ = nullptr;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
  std::vector<cudnnBackendDescriptor_t> made_;
};

// x = [1 2 3; 4 5 6; 7 8 9], w = [1 0; 2 -1].
const std::vector<float> kX = {1, 2, 3, 4, 5, 6, 7, 8, 9}, kW = {1, 0, 2, -1};

TEST_F(DnnTest, Forward) {
  check(Direction::forward, {{1, 1, 3, 3}, {1, 1, 2, 2}, {1, 1, 2, 2}}, false, {},
        {kX, kW, {4, 6, 10, 12}});
}

TEST_F(DnnTest, ForwardPaddedStridedDilated) {
  check(Direction::forward, {{1, 1, 3, 3}, {1, 1, 2, 2}, {1, 1, 2, 2}}, false,
        {.pad = {1, 1}, .stride = {2, 2}}, {kX, kW, {-1, 1, -7, 12}});
  check(Direction::forward, {{1, 1, 3, 3}, {1, 1, 2, 2}, {1, 1, 1, 1}}, false, {.dilation = {2, 2}},
        {kX, kW, {6}});
}

TEST_F(DnnTest, ForwardInGroupsAndNhwc) {
  // Two groups of one channel each: y = 10 x0 and y = 100 x1.
  check(Direction::forward, {{1, 2, 1, 2}, {2, 1, 1, 1}, {1, 2, 1, 2}}, false, {},
        {{1, 2, 3, 4}, {10, 100}, {10, 20, 300, 400}});
  check(Direction::forward, {{1, 2, 1, 2}, {1, 2, 1, 1}, {1, 1, 1, 2}}, true, {},
        {{1, 3, 2, 4}, {10, 100}, {310, 420}});
}

TEST_F(DnnTest, Gradients) {
  const std::vector<Sizes> sizes = {{1, 1, 3, 3}, {1, 1, 2, 2}, {1, 1, 2, 2}};
  const std::vector<float> dy = {1, 2, 3, 4};
  check(Direction::data, sizes, false, {}, {{1, 2, 0, 5, 7, -2, 6, 5, -4}, kW, dy});
  check(Direction::filter, sizes, false, {}, {kX, {37, 47, 67, 77}, dy});
}

TEST_F(DnnTest, BiasSumAndReluFollow) {
  cudnnBackendDescriptor_t y = tensor('y', {1, 2, 1, 1}, true, true);
  cudnnBackendDescriptor_t z = tensor('z', {1, 2, 1, 1}, true, true);
  cudnnBackendDescriptor_t u = tensor('u', {1, 2, 1, 1}, true);
  cudnnBackendDescriptor_t g =
      graph({operation(Direction::forward, tensor('x', {1, 1, 1, 1}, true),
                       tensor('w', {2, 1, 1, 1}, true), y, {}),
             pointwise(CUDNN_POINTWISE_ADD, y, tensor('b', {1, 2, 1, 1}, true), z),
             pointwise(CUDNN_POINTWISE_RELU_FWD, z, nullptr, u)});
  ASSERT_EQ(CUDNN_STATUS_SUCCESS, status_);
  float* out = unwritten(2);
  cudnnBackendDescriptor_t p = plan(configs(g)[1]);
  EXPECT_EQ(CUDNN_STATUS_SUCCESS,
            execute(p, {'x', 'w', 'b', 'u'}, {device({2}), device({3, 4}), device({-7, 1}), out},
                    nullptr));
  EXPECT_EQ(host(out, 2), (std::vector<float>{0, 9}));
}

TEST_F(DnnTest, TensorCoresRoundAndSaySo) {
  cudnnBackendDescriptor_t g =
      graph({operation(Direction::forward, tensor('x', {1, 1, 1, 1}, true),
                       tensor('w', {1, 1, 1, 1}, true), tensor('y', {1, 1, 1, 1}, true), {})});
  const float fine = 1 + 0x1p-11f + 0x1p-12f;
  const auto all = configs(g);
  ASSERT_EQ(all.size(), 2u);
  for (cudnnBackendDescriptor_t config : all) {
    const auto said = notes(config);
    const bool rounds =
        std::find(said.begin(), said.end(), CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != said.end();
    cudnnBackendDescriptor_t p = plan(config);
    float* y = unwritten(1);
    execute(p, {'x', 'w', 'y'}, {device({fine}), device({1}), y}, unwritten(64));
    EXPECT_EQ(host(y, 1)[0], rounds ? 1 + 0x1p-10f : fine);
  }
  EXPECT_EQ(configs(g, CUDNN_HEUR_MODE_FALLBACK).size(), 1u);
}

TEST_F(DnnTest, RefusesWrongAttributes) {
  cudnnBackendDescriptor_t d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::vector<float> floats = {1, 1, 1};
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
            set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_FLOAT, floats));
  EXPECT_EQ(message(), "the attribute has another type");
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM,
            set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, Sizes{1, 1}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
            set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, Sizes{1, 2}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, cudnnBackendFinalize(d)) << "nothing was set";
  cudnnBackendDescriptor_t whole = tensor('x', {1, 1, 1, 1});
  EXPECT_EQ(CUDNN_STATUS_NOT_INITIALIZED,
            set(whole, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, Sizes{1}));
  cudnnBackendDescriptor_t op = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
            set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                std::vector<cudnnBackendDescriptor_t>{d}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, cudnnBackendFinalize(handle_)) << "not a descriptor";
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, cudnnSetStream(nullptr, stream_));
}

TEST_F(DnnTest, RefusesShapesThatDoNotFit) {
  const auto make_one = [&](const Sizes& x, const Sizes& w, const Sizes& y) {
    operation(Direction::forward, tensor('x', x), tensor('w', w), tensor('y', y), {});
    return status_;
  };
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, make_one({1, 2, 3, 3}, {4, 1, 2, 2}, {1, 4, 2, 2}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            make_one({1, 2, 3, 3}, {4, 1, 2, 2}, {1, 4, 2, 3}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            make_one({1, 3, 3, 3}, {4, 2, 2, 2}, {1, 4, 2, 2}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            make_one({1, 2, 3, 3}, {4, 1, 2, 2}, {2, 4, 2, 2}));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            make_one({1, 2, 1, 3}, {4, 1, 2, 2}, {1, 4, 2, 2}));
}

TEST_F(DnnTest, RefusesGraphsThatAreNone) {
  cudnnBackendDescriptor_t x = tensor('x', {1, 1, 1, 1}), w = tensor('w', {1, 1, 1, 1}),
                           y = tensor('y', {1, 1, 1, 1});
  graph({pointwise(CUDNN_POINTWISE_RELU_FWD, x, nullptr, y)});
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, status_);
  cudnnBackendDescriptor_t conv = operation(Direction::forward, x, w, y, {});
  graph({conv, pointwise(CUDNN_POINTWISE_RELU_FWD, y, nullptr, tensor('z', {1, 1, 1, 1}))});
  EXPECT_EQ(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, status_) << "y is not virtual";
  graph({operation(Direction::forward, x, w, tensor('v', {1, 1, 1, 1}, false, true), {})});
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, status_) << "the result has no memory";
  graph({operation(Direction::forward, x, w, tensor('x', {1, 1, 1, 1}), {})});
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES, status_);
}

TEST_F(DnnTest, RefusesWrongMemory) {
  cudnnBackendDescriptor_t g =
      graph({operation(Direction::forward, tensor('x', {1, 1, 3, 3}), tensor('w', {1, 1, 2, 2}),
                       tensor('y', {1, 1, 2, 2}), {})});
  cudnnBackendDescriptor_t p = plan(configs(g)[0]);
  const Sizes ids = {'x', 'w', 'y'};
  float *x = device(kX), *w = device(kW), *y = unwritten(4);
  const auto go = [&](void* for_x, void* for_y) {
    return execute(p, ids, {for_x, w, for_y}, nullptr);
  };
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM, execute(p, {'x', 'w', 'q'}, {x, w, y}, nullptr));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, go(nullptr, y));
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER, go(reinterpret_cast<char*>(x) + 2, y));
  std::vector<float> on_host(9);
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, go(on_host.data(), y));
  expect_violation("cudnnBackendExecute: x is host memory");
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, go(unwritten(9), y));
  expect_violation("cudnnBackendExecute: x holds memory that was never written");
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, go(x, unwritten(3)));
  expect_violation("cudnnBackendExecute: y reaches 4 bytes beyond");
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, go(x, x));
  expect_violation("y overlaps another tensor");
}

TEST_F(DnnTest, RefusesTooSmallAWorkspaceAndUsesIt) {
  cudnnBackendDescriptor_t g =
      graph({operation(Direction::filter, tensor('x', {1, 1, 3, 3}), tensor('w', {1, 1, 2, 2}),
                       tensor('y', {1, 1, 2, 2}), {})});
  cudnnBackendDescriptor_t p = plan(configs(g)[0]);
  ASSERT_EQ(workspace(p), 256);
  float *x = device(kX), *w = unwritten(4), *dy = device({1, 2, 3, 4});
  EXPECT_EQ(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, execute(p, {'x', 'w', 'y'}, {x, w, dy}, nullptr));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, execute(p, {'x', 'w', 'y'}, {x, w, dy}, unwritten(63)));
  expect_violation("the workspace reaches 4 bytes beyond");
  float* room = device(std::vector<float>(64, 1));
  EXPECT_EQ(CUDNN_STATUS_SUCCESS, execute(p, {'x', 'w', 'y'}, {x, w, dy}, room));
  cudaStreamSynchronize(stream_);
  float seen = 0;
  cudaMemcpyAsync(&seen, room + 63, 4, cudaMemcpyDefault, stream_);
  expect_violation("never written");
}

}  // namespace
}  // namespace crema::cuda_sim
